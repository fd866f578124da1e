"""What the documents name is there: files in backticks, links, targets of the Makefile."""

import os
import re
import subprocess
import sys

import pytest
from support.faults import FAULTS
from support.paths import TOP

DOCUMENTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
# A file in backticks may be named from these folders, or by its name alone where it is the only one.
BASES = ["", "host", "host/receiver/src", "host/cli/src", "rtl", "rtl/common", "rtl/fade10g", "rtl/mac", "rtl/boards/example", "tests/rtl"]
SUFFIXES = "sv|rs|cpp|hpp|c|h|py|sh|def|md|json|vlt|toml"


@pytest.fixture(scope="module")
def files():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=TOP, capture_output=True, text=True, check=True)
    return set(out.stdout.split("\n"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_files_that_a_document_names_exist(document, files):
    names = {path.rsplit("/", 1)[-1] for path in files}
    missing = []
    for name in re.findall(rf"`(\w[\w/.-]*\.(?:{SUFFIXES}))`", document.read_text()):
        if "NAME" in name:
            continue
        found = name in names if "/" not in name else any(f"{base}/{name}".lstrip("/") in files for base in BASES)
        if not found:
            missing.append(name)
    assert not missing


def anchors(document):
    """The anchors of a document's headings, as its readers make them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_links_lead_somewhere(document, files):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", document.read_text()):
        path = (document.parent / target).resolve().relative_to(TOP) if target else document.relative_to(TOP)
        assert str(path) in files or (TOP / path).is_dir(), target
        assert not anchor or anchor in anchors(TOP / path), f"{target}#{anchor}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_make_targets_exist(document):
    targets = set(re.findall(r"^([a-z0-9-]+(?: [a-z0-9-]+)*):", (TOP / "Makefile").read_text(), re.M))
    targets = {word for line in targets for word in line.split()}
    named = set(re.findall(r"`make ([a-z0-9-]+)[ `]", document.read_text()))
    assert named <= targets


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_figures(name):
    fault = FAULTS[name]
    assert f"\n| {name} | {fault.what} | {fault.promise} | " in (TOP / "docs/reliability.md").read_text(), "tools/soak.py prints the table"


def test_the_fields_of_an_experiment_are_current():
    environment = os.environ | {"PYTHONPATH": str(TOP / "tests")}
    found = subprocess.run([sys.executable, TOP / "tools/experiment.py", "--check"], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
