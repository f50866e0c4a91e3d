"""Addresses of judges, and environment variables that move one, against those that the installed litellm reads."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.judges.backends import open_model
from judge.judges.credentials import moved, read_address, read_key, refuse_unrecorded, without_credentials
from judge.judges.model import ModelOptions
from tests.mock import ask

_READ = re.compile(r"""(?:getenv|environ\.get|get_secret|get_secret_str)\(\s*["']([A-Z_0-9]+)["']""")
_MOVES = re.compile(r"(API_BASE|BASE_URL|_URL|ENDPOINT|HOST|REGION|REGION_NAME|LOCATION|API_VERSION)$")
_ELSEWHERE = {
    # Folder of litellm to variables that other providers own, or that move no chat.
    "fastcrw": {"CRW_API_BASE"},
    "black_forest_labs": {"BFL_API_BASE"},
    "openrouter": {"OR_SITE_URL"},
    "watsonx": {"HOSTED_VLLM_API_BASE"},
    "you_com": {"YOUCOM_API_BASE"},
}
"""What the rule does not find by the folder's name, as it should be."""


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", {"OPENAI_API_BASE", "OPENAI_BASE_URL"}),
        ("text-completion-openai", {"OPENAI_API_BASE", "OPENAI_BASE_URL"}),
        ("anthropic", {"ANTHROPIC_BASE_URL"}),
        ("bedrock", {"AWS_REGION_NAME", "AWS_BEDROCK_RUNTIME_ENDPOINT"}),
        ("huggingface", {"HF_API_BASE"}),
        ("vertex_ai", {"VERTEXAI_LOCATION"}),
        ("groq", set()),
    ],
)
def test_only_the_variables_of_the_provider_are_recorded(provider: str, names: set[str]) -> None:
    environment = dict.fromkeys(
        (
            "OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "AWS_REGION_NAME", "HF_HOME",
            "AWS_BEDROCK_RUNTIME_ENDPOINT", "HF_API_BASE", "VERTEXAI_LOCATION", "OPENAIX_API_BASE", "HTTPS_PROXY",
        ),
        "x",
    ) | {"GROQ_API_BASE": " "}  # fmt: skip
    assert set(moved(provider, environment)) == names


def test_every_variable_that_litellm_reads_for_an_address_is_known() -> None:
    spec = importlib.util.find_spec("litellm")
    assert spec.origin is not None
    folders = Path(spec.origin).parent / "llms"
    unknown = {
        (folder.name, name)
        for folder in folders.iterdir()
        for file in folder.rglob("*.py")
        for name in _READ.findall(file.read_text(encoding="utf-8"))
        if _MOVES.search(name) and not moved(folder.name, {name: "x"})
    }
    assert len(list(folders.iterdir())) > 100
    assert unknown == {(folder, name) for folder, names in _ELSEWHERE.items() for name in names}


def test_a_user_in_a_variable_is_refused_without_its_password() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_BASE must hold no user name") as refused:
        moved("openai", {"OPENAI_API_BASE": "http://ann:pass/word@host/v1"})
    assert "word" not in str(refused.value)


@pytest.mark.parametrize("name", ["OPENAI_CUSTOM_HEADERS", "USE_LITELLM_PROXY"])
def test_what_no_record_can_show_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_unrecorded({name: ""})
    monkeypatch.setenv(name, "True")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    with pytest.raises(UsageError, match=f"{name} is set"):
        open_model("openai/gpt-4o", ModelOptions()).check([])


def test_an_address_of_litellm_is_recorded_and_changes_no_digest(no_keys: None, monkeypatch) -> None:
    name = "litellm/openai/gpt-4o-mini"
    usual = open_model(name)
    assert usual.endpoint is None
    assert set(usual.parameters(ask())) == {"model", "temperature", "max_tokens"}
    monkeypatch.setenv("OPENAI_API_BASE", "http://localhost:1/v1")
    there = open_model(name)
    assert there.endpoint == "OPENAI_API_BASE=http://localhost:1/v1"
    # The option wins over the variable in litellm, so the variable changes nothing.
    given = open_model(name, ModelOptions(base_url="http://localhost:2/v1"))
    assert given.endpoint is None
    assert given.parameters(ask()) == there.parameters(ask()) == usual.parameters(ask())


def test_no_env_file_is_read(tmp_path: Path) -> None:
    # litellm looks above the file of its package, so a copy of its first lines stands in for an installation.
    spec = importlib.util.find_spec("litellm")
    assert spec.origin is not None
    first = Path(spec.origin).read_text(encoding="utf-8").partition("from collections.abc")[0]
    defaults = Path(spec.origin).with_name("_process_defaults.py")
    more = defaults.read_text(encoding="utf-8") if defaults.exists() else ""
    assert "load_dotenv" in first + more
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text(first, encoding="utf-8")
    (package / defaults.name).write_text(more, encoding="utf-8")
    (tmp_path / ".env").write_text("OPENAI_API_BASE=http://localhost:1/v1\n", encoding="utf-8")
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "from judge.judges.backends.litellm import load_litellm\n"
        "try:\n    load_litellm()\nexcept ImportError:\n    pass\n"
        "print(os.environ.get('OPENAI_API_BASE'), os.environ.get('LITELLM_MODE'))"
    )
    environment = {**os.environ, "LITELLM_MODE": "DEV"}
    environment.pop("OPENAI_API_BASE", None)
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "None PRODUCTION\n"


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
