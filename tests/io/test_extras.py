import importlib
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from judge.errors import UsageError
from judge.io.installed import EXTRAS, has_extra, how_to_get, module_of, need_extra
from tests.conftest import PROJECT


def test_each_extra_is_declared_with_its_package() -> None:
    declared = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = declared["optional-dependencies"]
    assert extras.pop("all") == ["trec-judge[crowd,llama,pictures,rouge]"]
    declares = {name: {re.split("[>=]=", line)[0] for line in lines} for name, lines in extras.items()}
    assert declares.keys() == EXTRAS.keys()
    assert declares == {name: {package} for name, package in EXTRAS.items()}
    needed = {line.partition(">=")[0] for line in declared["dependencies"]}
    assert not needed & {*EXTRAS.values()}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("crowd", "x needs polars, which is not installed: `pip install 'trec-judge[crowd]'`"),
        (
            "autojudge",
            "x needs autojudge-base, which is not installed: `pip install 'trec-judge[autojudge]'`, and NLTK's stop "
            "words",
        ),
    ],
)
def test_a_missing_extra_is_said_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
    monkeypatch.setitem(sys.modules, module_of(EXTRAS[name]), None)
    assert not has_extra(name)
    with pytest.raises(UsageError) as caught:
        need_extra(name, "x")
    assert str(caught.value) == said
    assert said.endswith(how_to_get(name))


def test_a_folder_that_only_has_the_name_is_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "no_such_module").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRAS, "crowd", "no-such-module")
    assert not has_extra("crowd")
    (tmp_path / "no_such_module" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert has_extra("crowd")


def test_a_module_that_is_loaded_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    # Such as one that a test or a program made; Python knows no file of it.
    monkeypatch.setitem(sys.modules, "polars", ModuleType("polars"))
    assert has_extra("crowd")
    need_extra("crowd", "x")
