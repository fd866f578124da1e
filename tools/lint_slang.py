#!/usr/bin/env python3
"""Elaborates the RTL with slang, which takes legal SystemVerilog only; warnings are errors.

Usage: tools/lint_slang.py < runs     each line is the arguments of one run, as slang knows them
"""

import sys

from pyslang.driver import Driver

# Widths and numbers are parameters, so a cast may be to the type that is there already; Verible indents.
ALWAYS = "-Wextra -Wno-useless-cast -Wno-misleading-indentation -Werror"


def is_clean(run):
    """Whether slang takes this; it prints what it does not take."""
    driver = Driver()
    driver.addStandardArgs()
    if not (driver.parseCommandLine(f"slang {ALWAYS} {run}") and driver.processOptions() and driver.parseAllSources()):
        return False
    parsed = driver.reportParseDiags()
    driver.reportCompilation(driver.createCompilation(), True)
    return driver.reportDiagnostics(True) and parsed


def main():
    refused = [run for run in sys.stdin.read().splitlines() if not is_clean(run)]
    for run in refused:
        print(f"slang refuses: {run}", file=sys.stderr)
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
