import pytest

from judge.errors import UsageError
from judge.judges.credentials import read_address, read_key, without_credentials


@pytest.mark.parametrize(
    ("given_url", "url"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000/v1"),
        ("https://example.org/api/v1/chat/completions", "https://example.org/api/v1"),
        ("https://example.org/v1beta/openai/", "https://example.org/v1beta/openai"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
        ("HTTP://Example.ORG", "http://example.org/v1"),
    ],
)
def test_addresses(given_url: str, url: str) -> None:
    assert read_address(given_url).url == url


def test_credentials_in_an_address_are_kept_apart() -> None:
    address = read_address("http://ann:p%40ss@host:1/v1")
    assert (address.url, address.user) == ("http://host:1/v1", ("ann", "p@ss"))


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host", "http://", "http://host:99999", "http://h/v1?key=1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--base-url"):
        read_address(url)


def test_keys_are_trimmed_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_KEY", " abc\n")
    assert read_key("X_KEY") == "abc"
    monkeypatch.setenv("X_KEY", "")
    assert read_key("X_KEY") is None
    monkeypatch.setenv("X_KEY", "a\nb")
    with pytest.raises(UsageError, match="X_KEY") as refused:
        read_key("X_KEY")
    assert "a\nb" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("http://user:secret@host:1/v1", "http://host:1/v1"),
        ("--base-url=http://user:secret@host/v1", "--base-url=http://host/v1"),
        ("http://host/v1", "http://host/v1"),
        ("mail@host", "mail@host"),
    ],
)
def test_an_address_is_shown_without_credentials(given: str, shown: str) -> None:
    assert without_credentials(given) == shown
