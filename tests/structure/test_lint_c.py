"""What tools/lint_c.sh is for, it finds: wrong lines fail."""

import subprocess

from support.paths import TOP

# Of checkpatch, then of sparse.
WRONG = {
    "ERROR:SPACING": "int fade_wrong1(int a);\nint fade_wrong1(int a)\n{\n\tif(a)\n\t\treturn 1;\n\treturn 0;\n}\n",
    "ERROR:TRAILING_WHITESPACE": "#define FADE_WRONG2 1 \n",
    "CHECK:LONG_LINE": f"#define FADE_WRONG3 ({'1 + ' * 25}1)\n",
    "WARNING:AVOID_EXTERNS": "extern int fade_wrong4;\n",
    "incorrect type in return expression": "__be16 fade_wrong5(u16 a);\n__be16 fade_wrong5(u16 a)\n{\n\treturn a;\n}\n",
    "context imbalance in 'fade_wrong6'": "void fade_wrong6(void);\nvoid fade_wrong6(void)\n{\n\tspin_lock(&lock);\n}\n",
    "symbol 'fade_wrong7' was not declared": "int fade_wrong7;\n",
}


def found(folder, lines):
    """The exit status, and what is said of a source of the driver with these lines at its end."""
    source = folder / "fadelink_numbers.c"
    source.write_text((TOP / "driver/fadelink_numbers.c").read_text() + lines)
    result = subprocess.run([TOP / "tools/lint_c.sh", source], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def test_wrong_lines_of_the_driver_are_found(tmp_path):
    status, said = found(tmp_path, "\n" + "\n".join(WRONG.values()))
    assert status == 1 and not [finding for finding in WRONG if finding not in said], said


def test_a_finding_of_sparse_alone_fails(tmp_path):
    """The compiler and checkpatch have nothing against it."""
    status, said = found(tmp_path, "\n" + WRONG["incorrect type in return expression"])
    assert status == 1 and "ERROR:" not in said and "CHECK:" not in said, said
