"""`fadelink demo`, and what packages are made of: man pages and completions of all commands."""

import subprocess

from support.netns import sh
from support.paths import FADELINK, SIM
from system.test_help import COMMANDS


def test_the_demo(bench):
    """As its help prints it: all words, and each command once; the interface that it made is gone."""
    status, out, err = bench.run("demo", "--seconds", 4, "--simulator", SIM)
    assert status == 0 and "PASSED: all" in out and "executed exactly once" in out, out + err
    assert "fadelink0" not in sh("ip", "-n", bench.pc_ns, "link")
    # Over a cable that is there.
    sh("ip", "-n", bench.board_ns, "link", "set", "feb0", "netns", bench.pc_ns)
    sh("ip", "-n", bench.pc_ns, "link", "set", "feb0", "up")
    status, out, err = bench.run("demo", "--seconds", 2, "--simulator", SIM, "--iface", "eth0", "--boards-iface", "feb0")
    assert status == 0 and "PASSED: all" in out, out + err


def test_errors(bench):
    for words, expected in [
        (["--simulator", bench.tmp / "none"], f"the simulated boards, {bench.tmp}/none: No such file"),
        (["--simulator", SIM, "--boards-iface", "none0"], "the simulated boards: "),
        (["--simulator", SIM, "--seconds", "x"], "--seconds"),
    ]:
        status, _, err = bench.run("demo", *words)
        assert status != 0 and expected in err, err


def test_man_pages_and_completions(tmp_path):
    subprocess.run([FADELINK, "generate", "--man", tmp_path, "--completions", tmp_path], check=True)
    pages = {path.name: path.read_text() for path in tmp_path.glob("*.1")}
    assert set(pages) == {"fadelink.1", *(f"fadelink-{name}.1" for name in COMMANDS)}
    for name, page in pages.items():
        assert ".SH NAME" in page and ".SH OPTIONS" in page, name
    assert "\n.SH EXAMPLES\n" in pages["fadelink-receive.1"] and "\\-\\-feb" in pages["fadelink-receive.1"]
    completions = {path.name for path in tmp_path.iterdir()} - set(pages)
    assert completions == {"_fadelink", "_fadelink.ps1", "fadelink.bash", "fadelink.elv", "fadelink.fish"}
    words = f"source {tmp_path}/fadelink.bash; COMP_WORDS=(fadelink rec); COMP_CWORD=1; _fadelink fadelink rec fadelink; echo ${{COMPREPLY[@]}}"
    found = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["receive"], found
