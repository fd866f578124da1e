"""Generator of FuseSoC: a cocotb module with the tests of one top. They stay where they are, because they read the project's files."""

import sys
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[2]
MODULE = """\
import atexit
import importlib
import os
import sys
import xml.etree.ElementTree

sys.path[:0] = [{tests!r}, {rtl!r}]
found = importlib.import_module({module!r})
globals().update({{name: test for name, test in vars(found).items() if name.startswith({prefix!r})}})


@atexit.register
def end_with_an_error_if_a_test_failed():
    # A simulator does not.
    cases = xml.etree.ElementTree.parse("results.xml").getroot().findall(".//testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    print(f"{{len(cases)}} tests, failed: {{', '.join(failed) or 'none'}}", flush=True)
    if failed or not cases:
        os._exit(1)
"""


def main():
    settings = yaml.safe_load(Path(sys.argv[1]).read_text())
    module, top = (settings["parameters"][name] for name in ("module", "top"))
    tests = TOP / "tests"
    Path("fadelink_tests.py").write_text(MODULE.format(tests=str(tests), rtl=str(tests / "rtl"), module=module, prefix=f"{top}_"))
    files = [{"fadelink_tests.py": {"file_type": "user", "copyto": "fadelink_tests.py"}}]
    extra = tests / "rtl/extra" / f"{top}.sv"
    if extra.exists():
        Path(extra.name).write_bytes(extra.read_bytes())
        files.append({extra.name: {"file_type": "systemVerilogSource"}})
    core = {"name": settings["vlnv"], "filesets": {"tests": {"files": files}}, "targets": {"default": {"filesets": ["tests"]}}}
    Path("tests.core").write_text(f"CAPI=2:\n{yaml.safe_dump(core)}")


if __name__ == "__main__":
    main()
