"""What the pages say is so: their Python is run, their tables are compared, their links lead somewhere."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import documents
import servers
from ringfence import exceptions

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs" / "python").glob("*.md")) + [
    ROOT / "README.md", ROOT / "sdk" / "python" / "README.md"]
WITHIN = 110

# Blocks that cannot run here, as (page, first line); each needs a reason.
NOT_RUN = set()


def name(page):
    return str(page.relative_to(ROOT))


@pytest.fixture
def place(tmp_path):
    """A working directory as the pages have it: with the example project in it."""
    subprocess.run(["sh", ROOT / "examples" / "project.sh", tmp_path / "project"], check=True)
    return tmp_path


@pytest.fixture
def variables(request, place):
    """Pages that are about servers find one in TEAM_SERVER, and one without TLS in LOCAL_SERVER."""
    text, found = request.getfixturevalue("page").read_text(encoding="utf-8"), dict(os.environ)
    if "TEAM_SERVER" in text:
        server = request.getfixturevalue("tls_server").options
        shutil.copy(server["ca_certificate"], place / "team.pem")
        found.update(TEAM_SERVER=server["endpoint"], TEAM_TOKEN=server["token"])
    if "LOCAL_SERVER" in text:
        found["LOCAL_SERVER"] = request.getfixturevalue("plain_server").options["endpoint"]
    return found


@pytest.fixture(scope="module")
def plain_server():
    with servers.served() as where:
        yield where


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_python_of_a_page_does_what_the_page_says(page, place, variables):
    done = subprocess.run(
        [sys.executable, documents.__file__, page], cwd=place, env=variables,
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=WITHIN)
    assert done.returncode == 0, done.stderr


def test_every_page_has_python_that_is_run():
    without = [name(page) for page in PAGES
               if not any(block.runs for block in documents.blocks(page.read_text(encoding="utf-8")))]
    assert without == ["docs/python/README.md"]


def test_what_is_not_run_is_known():
    found = {(name(page), block.first_line)
             for page in PAGES
             for block in documents.blocks(page.read_text(encoding="utf-8")) if not block.runs}
    assert found == NOT_RUN


def test_the_table_of_exceptions_has_all_of_them():
    page = (ROOT / "docs" / "python" / "errors.md").read_text(encoding="utf-8")
    table = page.split("## Which situation raises which")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, flags=re.M)
    assert sorted(listed) == sorted(exceptions.__all__)
    assert len(listed) == len(set(listed))


def test_the_fields_in_the_table_are_those_of_the_exceptions():
    page = (ROOT / "docs" / "python" / "errors.md").read_text(encoding="utf-8")
    for row in re.finditer(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", page, flags=re.M):
        source = getattr(exceptions, row[1])
        for field in re.findall(r"`(\w+)`", row[2]):
            assert any(f"self.{field} =" in text or f"self.{field}: " in text
                       for text in _sources(source)), f"{row[1]} has no {field}"


def _sources(kind):
    import inspect
    return [inspect.getsource(each) for each in kind.__mro__ if each.__module__ == exceptions.__name__]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_are_there(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{name(page)}: {target}"
        if heading:
            assert heading in _headings(found.read_text(encoding="utf-8")), f"{name(page)}: {target}"


def _headings(text):
    """As they are called in links: lower case, without punctuation, with hyphens."""
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_page_for_the_package_index_has_no_links():
    # A package index shows it away from the files that it could link to.
    text = (ROOT / "sdk" / "python" / "README.md").read_text(encoding="utf-8")
    assert "](" not in text


DOCTESTS = """
import doctest, importlib, pkgutil, sys
import ringfence
tried = {}
for module in pkgutil.walk_packages(ringfence.__path__, "ringfence."):
    if "._wire" not in module.name:
        result = doctest.testmod(importlib.import_module(module.name))
        tried[module.name] = result.attempted
        if result.failed:
            sys.exit(1)
assert tried["ringfence._presets"] >= 5 and tried["ringfence._types"] >= 3, tried
"""


def test_examples_in_docstrings_are_right():
    # In a process of their own: they register presets.
    done = subprocess.run([sys.executable, "-c", DOCTESTS], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=WITHIN)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("expected, printed, is_right", [
    ("a\nb\n", "a\nb\n", True),
    ("a\nb\n", "a\n", False),
    ("a ... c\n", "a b c\n", True),
    ("a ... c\n", "a\nb c\n", False),
    ("a\n...\nz\n", "a\nb\nc\nz\n", True),
    ("a\n...\nz\n", "a\nz\n", True),
    ("a\n...\nz\n", "a\nb\n", False),
    ("a.c\n", "abc\n", False),
])
def test_output_is_compared(expected, printed, is_right):
    assert documents.fits(expected, printed) is is_right


def test_a_page_that_is_wrong_is_found(tmp_path):
    for text in ["```python\nprint(1)\n```\n\n```text\n2\n```\n",
                 "```python\nprint(1)\n```\n",
                 "```python\npass\n```\n\n```text\n1\n```\n",
                 "```python\n1 / 0\n```\n"]:
        page = tmp_path / "page.md"
        page.write_text(text)
        assert not documents.run(page), text
