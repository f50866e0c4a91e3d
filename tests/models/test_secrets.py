"""What the scrubber knows by value, and every way in which it may come back."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from judge.errors import UsageError
from judge.models import secrets
from judge.models.address import read_address, read_key, without_credentials
from judge.models.secrets import redact, remember, remember_credentials, remember_environment, scrub

PASSWORD = 'p@ss w/o#rd?&"ü'


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(secrets, "_forms", set())
    yield


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


WAYS = [
    PASSWORD,
    quote(PASSWORD, safe=""),
    json.dumps(PASSWORD),
    json.dumps(PASSWORD, ensure_ascii=False),
    json.dumps(PASSWORD).replace("/", r"\/"),
    encoded(PASSWORD),
    encoded(PASSWORD).rstrip("="),
    f"Basic {encoded(f'ann:{PASSWORD}')}",
    f"http://ann:{quote(PASSWORD, safe='')}@host",
    f"http://ann:{PASSWORD}@host",
]


@pytest.mark.parametrize("way", WAYS)
def test_a_password_of_an_address_is_known_however_it_is_written(way: str) -> None:
    assert scrub(f"so {way} it is") == f"so {way} it is", "nothing is known yet"
    read_address(f"http://ann:{quote(PASSWORD, safe='')}@host:1/v1")
    shown = scrub(f"so {way} it is")
    assert "***" in shown
    assert not any(part in shown for part in (PASSWORD, quote(PASSWORD, safe=""), encoded(PASSWORD)[:8], "rd?"))


@pytest.mark.parametrize("argument", [f"http://ann:{PASSWORD}@host/v1", f"--base-url=http://ann:{PASSWORD}@host/v1"])
def test_an_argument_is_cut_and_its_password_known_whatever_its_characters(argument: str) -> None:
    assert without_credentials(argument) == argument.replace(f"ann:{PASSWORD}@", "")
    remember_credentials(argument)
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


def test_a_key_is_known_once_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_API_KEY", " key-of-mine ")
    assert scrub("key-of-mine") == "key-of-mine"
    read_key("JUDGE_API_KEY")
    assert scrub(f"key-of-mine, {encoded('key-of-mine')}") == "***, ***"


def test_short_words_stay_words() -> None:
    remember("EMPTY")
    remember("")
    remember_credentials("http://ann:pw@host")
    assert scrub("EMPTY ann pw") == "EMPTY ann pw"
    assert scrub(f"http://ann:pw@host and {encoded('ann:pw')}") == "http://***host and ***"


def test_secrets_of_the_provider_and_of_proxies_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://ann:proxy-word@proxy:1")
    remember_environment({"GROQ_API_KEY": "groq-key", "XAI_API_KEY": "xai-key", "GROQ_MODEL": "groq-model"}, ["GROQ"])
    assert scrub("groq-key xai-key groq-model proxy-word") == "*** xai-key groq-model ***"


def test_a_key_without_a_password_is_known() -> None:
    remember_credentials("http://key-as-user@host/v1")
    assert scrub("key-as-user") == "***"
    assert scrub(encoded("key-as-user:")) == "***"


def test_messages_lose_what_only_looks_like_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcd-efgh-1234")
    shown = redact("abcd-efgh-1234 sk-proj-99aa Basic YW5uOnB3 Bearer tok.en")
    assert shown == "*** *** Basic *** Bearer ***"
    assert redact("Basic authentication, Basic Authentication") == "Basic authentication, Basic Authentication"
