"""What the scrubber knows by value, and every way in which it may come back."""

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest

from judge.cli import main
from judge.errors import UsageError
from judge.judges.backends import open_model
from judge.judges.credentials import holds_key, known_secrets, moved, read_address, redact, scrub, without_credentials

PASSWORD = 'p@ss w/o#rd?&"ü'


KEY = "key-of-mine-7"
WORD = "t0k3nt0k3n12"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("variables", "text", "shown"),
    [
        # A user name is no secret, and neither is a word, nor a short one without a digit.
        ({"ANY_URL": "http://student@host/j"}, "named by the student", "named by the student"),
        ({"ANY_URL": "http://student:tunafish@host/j"}, "student tunafish", "student tunafish"),
        ({"JUDGE_API_KEY": "ollama"}, "ollama says", "ollama says"),
        ({"JUDGE_API_KEY": "localhost"}, "at localhost:1", "at localhost:1"),
        ({"SOME_TOKEN": "pw1"}, "pw1", "pw1"),
        ({"SOME_MODEL": KEY}, KEY, KEY),
        # Nor a number, a date, a word, or a word with a number behind it.
        ({"PIN_TOKEN": "123456"}, "It cites 123456 of them.", "It cites 123456 of them."),
        ({"PIN_TOKEN": "1234567890123456"}, "1234567890123456", "1234567890123456"),
        ({"GITHUB_TOKEN": "2026-11-28"}, "on 2026-11-28", "on 2026-11-28"),
        ({"GITHUB_TOKEN": "2026-11-28 10:20:30"}, "at 2026-11-28 10:20:30", "at 2026-11-28 10:20:30"),
        ({"JUDGE_API_KEY": "groundedness12"}, "groundedness12", "groundedness12"),
        ({"JUDGE_API_KEY": "Groundedness2026"}, "Groundedness2026", "Groundedness2026"),
        ({"SOME_TOKEN": "internationalization"}, "internationalization", "internationalization"),
        ({"SOME_TOKEN": "pass12"}, "my pass12.", "my pass12."),
        # Twelve characters that change three times.
        ({"SOME_TOKEN": "pass-12-word"}, "my pass-12-word.", "my ***."),
        ({"SOME_TOKEN": "passWORD12ab"}, "my passWORD12ab.", "my ***."),
        ({"SOME_TOKEN": "pass-12-wor"}, "my pass-12-wor.", "my pass-12-wor."),
        ({"SOME_TOKEN": "passwordAB12"}, "my passwordAB12.", "my passwordAB12."),
        # Or the shape of a provider's key.
        ({"SOME_TOKEN": "hf_" + "a" * 20}, f"hf_{'a' * 20}", "***"),
        # The name counts too.
        ({"SOME_MODEL": "pass-12-word"}, "my pass-12-word.", "my pass-12-word."),
        # Whole words only.
        ({"SOME_TOKEN": WORD}, f"my{WORD} {WORD}3 {WORD}s T{WORD[1:]}", f"my{WORD} {WORD}3 {WORD}s T{WORD[1:]}"),
        ({"SOME_TOKEN": WORD}, f"({WORD}) _{WORD}_ m-{WORD} é:{WORD}", "(***) _***_ m-*** é:***"),
        ({"SOME_TOKEN": WORD}, rf"\n{WORD} \u201c{WORD}\u201d", r"\n*** \u201c***\u201d"),
        ({"JUDGE_API_KEY": f" {KEY} "}, f"{KEY}, {encoded(KEY)}", "***, ***"),
        ({"https_proxy": "http://ann:proxy-word-1@proxy:1"}, "ann proxy-word-1", "ann ***"),
        ({"ANY_URL": "http://ann:pass12@host"}, f"Basic {encoded('ann:pass12')}", "Basic ***"),
    ],
)
def test_what_a_reply_loses(variables: dict[str, str], text: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scrub(text)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (before, scrub(text)) == (text, shown)


WAYS = [
    PASSWORD, quote(PASSWORD, safe=""), json.dumps(PASSWORD), json.dumps(PASSWORD, ensure_ascii=False),
    json.dumps(PASSWORD).replace("/", r"\/"), encoded(PASSWORD), encoded(PASSWORD).rstrip("="),
    f"Basic {encoded(f'ann:{PASSWORD}')}", f"http://ann:{quote(PASSWORD, safe='')}@host", f"http://ann:{PASSWORD}@host",
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_password_of_an_address_is_known_however_it_is_written(way: str) -> None:
    address = read_address(f"http://ann:{quote(PASSWORD, safe='')}@host:1/v1")
    shown = known_secrets(address.whole).scrub(f"so {way} it is")
    assert "***" in shown
    assert not any(part in shown for part in (PASSWORD, quote(PASSWORD, safe=""), encoded(PASSWORD)[:8], "rd?"))


@pytest.mark.parametrize("argument", [f"http://ann:{PASSWORD}@host/v1", f"--base-url=http://ann:{PASSWORD}@host/v1"])
def test_an_argument_is_cut_and_its_password_known_whatever_its_characters(argument: str, monkeypatch) -> None:
    assert without_credentials(argument) == argument.replace(f"ann:{PASSWORD}@", "")
    monkeypatch.setattr("sys.argv", ["judge", argument])
    assert scrub(PASSWORD) == "***"


@pytest.mark.parametrize(
    "url",
    [
        "http://ann:pa/zzword@host/v1",
        "http://ann:12/34567@host/v1",
        "http://ann:pa#zzword@host/v1",
        "http://ann:pa?zzword@host/v1",
        "http://ann:12#34567@host/v1",
        "http://[ann:pazzword@host/v1",
    ],
)
def test_a_password_that_breaks_its_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="%2F") as refused:
        read_address(url)
    assert not any(part in str(refused.value) for part in ("pa/", "zzword", "34567", "pazzword@"))
    assert refused.value.__cause__ is None


def test_messages_lose_what_only_looks_like_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcd-efgh-1234")
    assert redact("abcd-efgh-1234 sk-proj-99aa Basic YW5uOnB3 Bearer tok.en") == "*** *** Basic *** Bearer ***"
    assert redact("Basic authentication, Basic Authentication") == "Basic authentication, Basic Authentication"


LONG = "sk-proj-Ab3dEf6hIj9l"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bad key sk-proj-Ab3d****", "bad key ***"),
        ("bad key sk-proj-Ab3dEf6hI***, or (sk-proj-Ab3dEf6...)", "bad key ***, or (***)"),
        ('{"message": "sk-proj-Ab3dEf6h", "code": 1}', '{"message": "***", "code": 1}'),
        (f"at {encoded(LONG)[:16]}…", "at ***"),
        ("keys begin with sk-proj- here", "keys begin with sk-proj- here"),
        ("the user administrator:tuna", "the user administrator:tuna"),
        ("the user administrator:tunafish-7b****", "the user ***"),
        ("my twelveletters, the twelvelett", "my ***, the twelvelett"),
        ("a tuna salad, password-protected", "a tuna salad, password-protected"),
    ],
)
def test_a_message_loses_the_first_half_of_a_secret_too(text: str, shown: str, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", LONG)
    monkeypatch.setenv("OTHER_TOKEN", "twelveletters")
    monkeypatch.setenv("ANY_URL", "http://administrator:tunafish-7b8c@host")
    monkeypatch.setenv("THIRD_SECRET", "password-file-1")
    assert known_secrets().scrub_message(text) == shown
    # A reply is paid for, and loses whole secrets alone.
    assert scrub(text) == text


def test_a_message_also_loses_what_may_be_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "pass12")
    monkeypatch.setenv("OTHER_SECRET", "twelveletters")
    monkeypatch.setenv("THIRD_SECRET", "ollama")
    text = "pass12, twelveletters, ollama"
    assert (redact(text), scrub(text)) == ("***, ***, ollama", text)


HEX = "0123456789abcdef" * 2
SHAPED = [
    "sk-" + "aB3" * 8, "sk-proj-" + "aB3_" * 8, "sk-ant-api03-" + "aB3-" * 8, "sk-" + HEX, "AIza" + "Sy0-_" * 7,
    "AKIA" + "ABCD2345" * 2, "gsk_" + "aB3" * 8, "hf_" + "aB" * 12, "ghp_" + "a1" * 12, "xai-" + "aB3" * 9,
    "nvapi-" + "aB3" * 9, "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0",
]  # fmt: skip
"""Made-up keys, each in the shape of a provider's."""


@pytest.mark.parametrize("key", SHAPED)
def test_a_name_or_address_with_a_key_is_refused_and_the_key_is_not_repeated(key: str) -> None:
    for name in (f"openai/{key}", f"server/m?api_key={key}", f"litellm/openai/{key}", key):
        with pytest.raises(UsageError, match="holds a key") as caught:
            open_model(name)
        assert key not in str(caught.value)
    for address in (f"http://host/{key}/v1", f"http://host/v1?key={key}"):
        with pytest.raises(UsageError, match="--base-url holds a key") as caught:
            read_address(address)
        assert key not in str(caught.value)
    with pytest.raises(UsageError, match="OPENAI_API_BASE holds a key"):
        moved("openai", {"OPENAI_API_BASE": f"https://host/{key}/v1"})


@pytest.mark.parametrize(
    "name",
    [
        "openai/gpt-4.1-mini-2026-01-31",
        "server/sk-learn-instruct-large-model-7b-v2",
        "server/meta-llama/Llama-3.3-70B-Instruct-FP8-dynamic",
        "local//models/hf_models_of_the_whole_group/q4.gguf",
        "litellm/bedrock/arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-4",
        "litellm/azure/monkey=7",
        "server/tokenizer-key-value-model",
        f"openai/ft:gpt-4.1-mini:team::{HEX[:10]}",
    ],
)
def test_a_name_that_looks_like_a_key_only_at_first_sight_is_a_name(name: str) -> None:
    assert not holds_key(name)


def test_the_values_of_secret_variables_are_keys_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHATEVER_API_KEY", "my own odd key 7")
    monkeypatch.setenv("SHORT_TOKEN", "EMPTY")
    assert holds_key("server/my own odd key 7")
    assert not holds_key("server/EMPTY")
    monkeypatch.setenv("OPENAI_API_KEY", "localhost")
    assert not holds_key("http://localhost:1234/v1")


def test_no_configuration_with_a_key_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    arguments = ["run", "--runs", "runs", "--model", f"openai/{SHAPED[0]}", "--save-config", str(file)]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "--model holds a key" in said
    assert SHAPED[0] not in said
    assert not file.exists()
