"""What the commands that serve a desk say."""

import pytest

from judge.cli import main
from judge.extra.desk.app import Seat
from judge.extra.desk.cli import say_links
from judge.extra.desk.server import listen

ANN, BOB = Seat("1", "Ann \x1b[1m", "a" * 32), Seat("2", "Bob", "b" * 32)


def test_the_links_are_the_output_and_all_else_is_said_beside(capsys: pytest.CaptureFixture[str]) -> None:
    opened = listen(port=0)
    with opened.socket:
        say_links(opened, [ANN, BOB])
        out, err = capsys.readouterr()
        assert out == (
            f"Ann \\x1b[1m: http://127.0.0.1:{opened.port}/1/?token={ANN.token}\n"
            f"Bob: http://127.0.0.1:{opened.port}/2/?token={BOB.token}\n"
        )
        assert err == "Open the link in a browser. Ctrl-C stops the desk\n"
        # One person needs no name before the link.
        say_links(opened, [BOB])
        assert capsys.readouterr().out == f"http://127.0.0.1:{opened.port}/2/?token={BOB.token}\n"


def test_a_desk_that_others_can_reach_warns(capsys: pytest.CaptureFixture[str]) -> None:
    opened = listen("0.0.0.0", 0)
    with opened.socket:
        say_links(opened, [BOB])
    assert (
        "Warning: other machines can reach this desk. What goes to and fro is not encrypted" in capsys.readouterr().err
    )


@pytest.mark.parametrize("port", ["65536", "-1", "http", "8765.5", ""])
def test_what_is_no_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "assess", "--pool", "out", "--assessor", "ann", "--store", "s", f"--port={port}"])
    assert stopped.value.code == 2
    assert "judge serve assess: argument --port: expected " in capsys.readouterr().err


def test_serve_alone_lists_the_desks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--help"])
    assert stopped.value.code == 0
    assert "  assess  a desk in the browser at which assessors label pooled responses, blind" in capsys.readouterr().out
