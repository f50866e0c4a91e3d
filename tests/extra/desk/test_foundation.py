"""A desk lets in who has the link, takes forms from its own pages only, and stops when it is told to."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import httpx
import pytest
from starlette.responses import Response

from judge.cli import call
from judge.errors import OperationalError, UsageError
from judge.extra.desk.app import LARGEST_FORM, Guard, Seat, Visit, desk_app, listen, missing_page, new_token, serve_desk
from judge.extra.desk.cli import say_links
from tests.extra.desk.visiting import Visitor

ANN, BOB = Seat("1", "Ann", "a" * 32), Seat("2", "Bob", "b" * 32)


class Counter:
    """A desk that counts."""

    def __init__(self) -> None:
        self.counts = {"Ann": 0, "Bob": 0}
        self.app = desk_app(
            [ANN, BOB], {"/": self.show, "/missing": self.missing}, {"/add": self.add, "/fail": self.fail}, port=8765
        )

    async def show(self, visit: Visit) -> Response:
        return visit.page("plain.html", heading=visit.seat.name, text=str(self.counts[visit.seat.name]), onward=None)

    async def missing(self, visit: Visit) -> Response:
        missing_page()

    async def add(self, visit: Visit) -> Response:
        self.counts[visit.seat.name] += int(visit.form["by"])
        return visit.go("/")

    async def fail(self, visit: Visit) -> Response:
        raise OperationalError("labels.sqlite: the disk is <full>")


@pytest.fixture
def desk() -> Counter:
    return Counter()


@pytest.fixture
def visitor(desk: Counter) -> Iterator[Visitor]:
    with Visitor(desk.app) as visitor:
        yield visitor


@pytest.fixture
def ann(visitor: Visitor) -> Visitor:
    """A visitor who has taken Ann's seat."""
    visitor.enter("/1/", ANN.token)
    return visitor


def test_a_link_becomes_a_cookie_and_leaves_the_address_bar(visitor: Visitor) -> None:
    answer = visitor.get(f"/1/?token={ANN.token}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/1/")
    assert answer.headers["set-cookie"] == f"judge-8765={ANN.token}; HttpOnly; Path=/1/; SameSite=strict"
    assert "Ann" in visitor.get("/1/").text


def test_a_link_in_a_web_mailer_leads_on_from_a_page_of_the_desk(visitor: Visitor) -> None:
    answer = visitor.get(f"/1/?token={ANN.token}", **{"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/1/">' in answer.text


@pytest.mark.parametrize("path", ["/", "/1/", "/1/add", "/3/", "/1/?token=", f"/1/?token={BOB.token}", "/1/?token=ä"])
def test_without_the_link_there_is_nothing_to_see(visitor: Visitor, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 403
    assert "not open to you" in answer.text
    assert "Ann" not in answer.text


def test_an_address_that_is_too_long_is_no_error_of_the_desk(ann: Visitor) -> None:
    answer = ann.get(f"/1/{'9' * 5000}")
    assert (answer.status_code, "longer than 1,000 characters" in answer.text) == (414, True)


def test_a_seat_opens_no_other(ann: Visitor) -> None:
    assert ann.get("/2/").status_code == 403
    assert ann.get("/2/", cookie=f"judge-8765={ANN.token}").status_code == 403


@pytest.mark.parametrize(("status", "hosts"), [
    (403, ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::1"]),
    (403, ["127.0.0.1:abc", "127.0.0.1:99999", "127.0.0.1:18766, evil.example"]),
    (403, ["user@127.0.0.1:8765", "127.0.0.1/a"]),
    # The machine itself, a tunnel and a number are no foreign names.
    (303, ["localhost:9", "127.0.0.1", "[::1]:8765", "192.168.1.7:8765"]),
])  # fmt: skip
def test_another_name_that_leads_to_this_machine_is_refused(visitor: Visitor, status: int, hosts: list[str]) -> None:
    for host in hosts:
        answer = visitor.get(f"/1/?token={ANN.token}", host=host)
        assert (answer.status_code, "set-cookie" in answer.headers) == (status, status == 303), host


def test_a_desk_for_others_is_addressed_by_the_names_of_its_machine(desk: Counter) -> None:
    for hosts, status in (((), 403), (("Lab.example",), 303)):
        app = desk_app([ANN], {"/": desk.show}, {}, hosts, 8765)
        with Visitor(app, "http://lab.example:8765") as visitor:
            assert visitor.get(f"/1/?token={ANN.token}").status_code == status


def test_a_form_of_the_desk_is_taken(desk: Counter, ann: Visitor) -> None:
    answer = ann.send("/1/add", {"form_token": ANN.form_token, "by": "2"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/1/")
    assert desk.counts == {"Ann": 2, "Bob": 0}


@pytest.mark.parametrize(("token", "headers"), [
    ("", {}),
    (BOB.form_token, {}),
    (ANN.token, {}),
    (ANN.form_token, {"origin": "https://evil.example"}),
    (ANN.form_token, {"origin": "http://127.0.0.1:9999"}),
    (ANN.form_token, {"origin": "null"}),
    (ANN.form_token, {"origin": "http://["}),
    (ANN.form_token, {"sec-fetch-site": "cross-site"}),
    (ANN.form_token, {"sec-fetch-site": "same-site"}),
    (ANN.form_token, {"cookie": ""}),
])  # fmt: skip
def test_any_other_form_changes_nothing(desk: Counter, ann: Visitor, token: str, headers: dict[str, str]) -> None:
    assert ann.send("/1/add", {"form_token": token, "by": "2"}, **headers).status_code == 403
    assert desk.counts == {"Ann": 0, "Bob": 0}


def test_an_action_is_no_page(desk: Counter, ann: Visitor) -> None:
    assert ann.get("/1/add?by=2").status_code == 405
    assert ann.get("/1/missing").status_code == ann.get("/1/none").status_code == 404
    assert desk.counts == {"Ann": 0, "Bob": 0}


def test_a_form_that_is_too_large_or_no_form_is_refused(ann: Visitor) -> None:
    assert ann.send("/1/add", {"by": "1" * LARGEST_FORM}).status_code == 413
    assert ann.send("/1/add", {f"f{n}": "" for n in range(101)}).status_code == 400


def test_a_form_that_is_cut_off_on_its_way_is_no_error_of_the_desk(desk: Counter) -> None:
    """A server would print what a desk raises, on the terminal of whoever serves it."""
    sent: list[MutableMapping[str, Any]] = []
    cookie = f"judge-8765={ANN.token}".encode()
    scope = {
        "type": "http", "method": "POST", "path": "/1/add", "query_string": b"", "scheme": "http",
        "headers": [(b"host", b"127.0.0.1:8765"), (b"cookie", cookie)],
    }  # fmt: skip

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(desk.app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert desk.counts == {"Ann": 0, "Bob": 0}


def test_a_failure_is_said_on_a_page_and_cannot_be_markup(ann: Visitor) -> None:
    answer = ann.send("/1/fail", {"form_token": ANN.form_token})
    assert answer.status_code == 500
    assert "Nothing was saved" in answer.text
    assert "the disk is &lt;full&gt;" in answer.text


@pytest.mark.parametrize("path", ["/1/", "/2/", "/assets/base.css", "/assets/none.css", "/1/none"])
def test_every_answer_keeps_to_the_window_that_asked(ann: Visitor, path: str) -> None:
    headers = ann.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["form-action"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == ("max-age=3600" if path == "/assets/base.css" else "no-store")


def test_only_files_of_the_desk_are_served(visitor: Visitor) -> None:
    assert visitor.get("/assets/base.css").headers["content-type"].startswith("text/css")
    for name in ("desk.html", "../app.py", "..%2Fapp.py", "none.css", ""):
        assert visitor.get(f"/assets/{name}").status_code in (403, 404)


def test_a_path_that_is_none_of_a_seat_is_a_mistake_of_the_program() -> None:
    for path in ("assets", "a/b", ""):
        with pytest.raises(ValueError, match="no paths of seats"):
            Guard(Response(), [Seat(path, "Ann", new_token())])


def test_links_name_what_a_browser_can_reach() -> None:
    opened = listen("127.0.0.1", 0)
    with opened.socket:
        assert opened.local
        assert opened.links([ANN]) == (("Ann", f"http://127.0.0.1:{opened.port}/1/?token={ANN.token}"),)
    everywhere = listen("0.0.0.0", 0)
    with everywhere.socket:
        assert not everywhere.local
        assert f"http://{socket.gethostname()}:{everywhere.port}/" in everywhere.links([ANN])[0][1]
        assert socket.gethostname() in everywhere.hosts


def test_an_address_in_use_or_of_nobody_is_said() -> None:
    first = listen(port=0)
    with first.socket, pytest.raises(OperationalError, match=rf"127.0.0.1:{first.port}: cannot be used: .*--port"):
        listen(port=first.port)
    with pytest.raises(UsageError, match=r"--host no\.such\.host\.invalid: no address of this machine"):
        listen("no.such.host.invalid", 0)


async def inside_a_loop(call: Callable[[], None]) -> None:
    call()


@pytest.mark.usefixtures("heeded")
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("around", [lambda call: call(), lambda call: asyncio.run(inside_a_loop(call))])
def test_a_signal_ends_a_desk_in_good_order(desk, number, around) -> None:
    opened = listen(port=0)
    seen: list[int] = []

    def visit() -> None:
        link = opened.links([ANN])[0][1]
        with httpx.Client(follow_redirects=True) as client:
            seen.append(client.get(link).status_code)
            time.sleep(0.2)
            os.kill(os.getpid(), number)

    browser = threading.Thread(target=visit)
    around(lambda: serve_desk(desk.app, opened, browser.start))
    browser.join()
    assert seen == [200]
    with listen(port=opened.port).socket:
        pass


def test_the_links_are_the_output_and_all_else_is_said_beside(capsys: pytest.CaptureFixture[str]) -> None:
    opened = listen(port=0)
    with opened.socket:
        say_links(opened, [ANN._replace(name="Ann \x1b[1m"), BOB])
        out, err = capsys.readouterr()
        assert out == (
            f"Ann \\x1b[1m: http://127.0.0.1:{opened.port}/1/?token={ANN.token}\n"
            f"Bob: http://127.0.0.1:{opened.port}/2/?token={BOB.token}\n"
        )
        assert err == "Open the link in a browser. Ctrl-C stops the desk\n"
        # One person needs no name before the link.
        say_links(opened, [BOB])
        assert capsys.readouterr().out == f"http://127.0.0.1:{opened.port}/2/?token={BOB.token}\n"
    others = listen("0.0.0.0", 0)
    with others.socket:
        say_links(others, [BOB])
    said = capsys.readouterr().err
    assert "Warning: other machines can reach this desk. What goes to and fro is not encrypted" in said


@pytest.mark.parametrize("port", ["65536", "-1", "http", "8765.5", ""])
def test_what_is_no_port_is_refused(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        call("serve assess", ["--pool", "out", "--assessor", "ann", "--store", "s", f"--port={port}"])
    assert stopped.value.code == 2
    assert "judge serve assess: argument --port: expected " in capsys.readouterr().err
