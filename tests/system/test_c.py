"""The C header on live data: the example, and what it says about wrong use."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.netns import FEBS
from support.paths import TOP

HEADER = TOP / "host/c/include"
LIBRARY = TOP / "host/target/release"
ABUSE = r"""
#include <assert.h>
#include <fadelink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define SAYS(words) (strstr(fadelink_error(), words) || (fprintf(stderr, "%s\n", fadelink_error()), 0))

int main(int argc, char **argv)
{
	fadelink_config config = FADELINK_CONFIG_DEFAULT;
	const uint64_t *words;
	fadelink_kind kind;
	uint64_t value;

	(void)argc;
	assert(!strcmp(fadelink_error(), ""));
	assert(!fadelink_open(argv[1], "tape") && SAYS("tape"));
	assert(!fadelink_open("nothing0", "packet") && SAYS("nothing0"));
	assert(!fadelink_open(NULL, "packet") && SAYS("interface"));
	fadelink_receiver *receiver = fadelink_open(argv[1], "packet");
	assert(receiver);
	assert(!fadelink_feb_open(receiver, "xyz", NULL) && SAYS("xyz"));
	config.ring_packets = 100;
	assert(!fadelink_feb_open(receiver, argv[2], &config) && SAYS("ring_packets 100"));
	config.ring_packets = 64;
	config.firmware = 4;
	assert(!fadelink_feb_open(receiver, argv[2], &config) && SAYS("firmware 4"));
	config.firmware = FADELINK_ANY;
	config.word_order = 3;
	assert(!fadelink_feb_open(receiver, argv[2], &config) && SAYS("word_order 3"));
	config.word_order = FADELINK_ANY;
	fadelink_feb *feb = fadelink_feb_open(receiver, argv[2], &config);
	assert(feb);
	assert(!fadelink_feb_open(receiver, argv[2], NULL) && SAYS("it is open already"));
	assert(fadelink_command(feb, 1, 0, 10, 1, &value) == FADELINK_ERROR && SAYS("0x0001"));
	assert(fadelink_command(NULL, 0x100, 0, 10, 1, &value) == FADELINK_ERROR && SAYS("feb"));
	assert(fadelink_command(feb, 0x0207, 5, 50, 20, &value) == 0 && value == 5);
	assert(fadelink_read(feb, 8, 0, &words) == 0);
	assert(fadelink_release(feb, 1) == FADELINK_ERROR && SAYS("0 are there"));
	assert(fadelink_feb_kind(feb, &kind) == 0 && kind.protocol == FADELINK_ANY);
	assert(fadelink_start(feb) == 0);
	assert(fadelink_feb_kind(feb, &kind) == 0 && kind.protocol == FADELINK_FADE10G);
	assert(kind.firmware == FADELINK_FIRMWARE_FADELINK && kind.word_order == FADELINK_WORDS_LITTLE);
	assert(fadelink_feb_kind(feb, NULL) == FADELINK_ERROR && SAYS("kind"));
	while (!fadelink_arm(feb, 8192)) {
		struct pollfd wait = { .fd = fadelink_fd(feb), .events = POLLIN };

		assert(poll(&wait, 1, 5000) == 1);
	}
	assert(fadelink_read(feb, 8192, -1, &words) >= 1024 && words[1] == 1);
	assert(fadelink_release(feb, 1000) == 0);
	assert(fadelink_read(feb, 8, 60000, &words) > 0 && words[0] == 1000);
	assert(fadelink_counter(feb, "packets", &value) == 0 && value > 0);
	assert(fadelink_counter(feb, "sheep", &value) == FADELINK_ERROR && SAYS("sheep"));
	assert(fadelink_link_counter(receiver, "frames", &value) == 0 && value > 0);
	assert(fadelink_reset(feb) == 0);
	int64_t count;
	while ((count = fadelink_read(feb, 8, 60000, &words)) > 0)
		fadelink_release(feb, count);
	assert(count == FADELINK_ERROR && SAYS("aborted"));
	assert(fadelink_feb_ending(feb) == FADELINK_ENDING_UNKNOWN);
	assert(fadelink_start(feb) == 0 && fadelink_stop(feb) == 0);
	while ((count = fadelink_read(feb, 8, 60000, &words)) > 0)
		fadelink_release(feb, count);
	assert(count == FADELINK_END && fadelink_feb_ending(feb) == FADELINK_ENDING_CONFIRMED);
	fadelink_inquiry inquiry;
	assert(fadelink_inquire(feb, &inquiry) == 0 && inquiry.ending == FADELINK_ENDING_UNKNOWN && inquiry.resets == 0);
	char text[200], cut[5];
	assert(fadelink_against(feb, text, sizeof(text)) == 0 && !*text && fadelink_against(feb, NULL, 0) == 0);
	assert(fadelink_start(feb) == 0);
	assert(fadelink_against(feb, text, sizeof(text)) == 1 && !strcmp(text, "its end is not confirmed"));
	assert(fadelink_against(feb, cut, sizeof(cut)) == 1 && !strcmp(cut, "its "));
	assert(fadelink_against(NULL, text, sizeof(text)) == FADELINK_ERROR && SAYS("feb"));
	assert(fadelink_inquire(feb, NULL) == FADELINK_ERROR && SAYS("inquiry"));
	assert(fadelink_feb_ending(NULL) == FADELINK_ERROR && SAYS("feb"));
	fadelink_feb_close(feb);
	feb = fadelink_feb_open(receiver, "02:00:00:00:00:99", NULL);
	assert(fadelink_command(feb, 0x0100, 0, 10, 1, &value) == FADELINK_TIMEOUT && SAYS("command 0x0100 was not sent"));
	fadelink_feb_close(feb);
	fadelink_close(receiver);
	puts("all as it should be");
	return 0;
}
"""

FORK = r"""
#include <assert.h>
#include <fadelink.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORKED(call) assert((call) == FADELINK_ERROR && strstr(fadelink_error(), "forked"))

int main(int argc, char **argv)
{
	const uint64_t *words;
	fadelink_inquiry inquiry;
	fadelink_kind kind;
	uint64_t value;
	int lives[2], status;

	(void)argc;
	fadelink_receiver *receiver = fadelink_open(argv[1], argv[3]);
	fadelink_feb *feb = fadelink_feb_open(receiver, argv[2], NULL);
	assert(feb && fadelink_start(feb) == 0 && fadelink_read(feb, 8192, -1, &words) >= 1024);
	assert(pipe(lives) == 0);
	pid_t child = fork();
	if (!child) {
		FORKED(fadelink_start(feb));
		FORKED(fadelink_stop(feb));
		FORKED(fadelink_reset(feb));
		FORKED(fadelink_command(feb, 0x100, 0, 50, 20, &value));
		FORKED(fadelink_read(feb, 8, -1, &words));
		FORKED(fadelink_release(feb, 1));
		FORKED(fadelink_arm(feb, 8));
		FORKED(fadelink_fd(feb));
		FORKED(fadelink_feb_kind(feb, &kind));
		FORKED(fadelink_feb_ending(feb));
		FORKED(fadelink_inquire(feb, &inquiry));
		FORKED(fadelink_against(feb, NULL, 0));
		FORKED(fadelink_counter(feb, "packets", &value));
		FORKED(fadelink_link_counter(receiver, "frames", &value));
		assert(!fadelink_feb_open(receiver, "02:00:00:00:00:99", NULL) && strstr(fadelink_error(), "forked"));
		fadelink_feb_close(feb);
		fadelink_close(receiver);
		receiver = fadelink_open(argv[1], "packet");
		assert(receiver && !fadelink_feb_open(receiver, argv[2], NULL) && strstr(fadelink_error(), "open already"));
		fadelink_close(receiver);
		close(lives[1]);
		assert(write(1, "child\n", 6) == 6);
		return read(lives[0], &status, 1) == 0 ? 0 : 1;
	}
	/* No RESET came. */
	while (getchar() != '\n')
		;
	assert(fadelink_inquire(feb, &inquiry) == 0 && inquiry.resets == 0);
	/* The receiver ends with its FEB, which is sent RESET. */
	fadelink_close(receiver);
	fadelink_feb_close(feb);
	receiver = fadelink_open(argv[1], argv[3]);
	feb = fadelink_feb_open(receiver, argv[2], NULL);
	assert(feb && fadelink_start(feb) == 0 && fadelink_read(feb, 8192, -1, &words) >= 1024 && words[0] == 0);
	fadelink_feb_close(feb);
	fadelink_close(receiver);
	puts("closed");
	fflush(stdout);
	while (getchar() != '\n')
		;
	close(lives[1]);
	assert(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
"""


def compiled(bench, source, compiler="gcc", *options):
    program = bench.tmp / "program"
    words = [compiler, "-O2", "-Wall", "-Wextra", "-Werror", *options, f"-I{HEADER}", "-o", program, source,
             f"-L{LIBRARY}", "-lfadelink", f"-Wl,-rpath,{LIBRARY}"]  # fmt: skip
    subprocess.run([str(word) for word in words], check=True)
    return program


@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_the_example(bench, backend):
    bench.sim("--link", "loss=0.02")
    process = bench.start(bench.pc_ns, compiled(bench, TOP / "host/c/examples/receive.c"), "eth0", FEBS[0], 2, backend)
    status, out, err = process.finish()
    assert status == 0, err
    assert out.startswith("identity 4641444531304701, ") and int(out.split()[2]) > 0


def test_the_printed_commands(bench):
    """Those of docs/bindings.md, in a folder that has the repository's `host`."""
    section = (TOP / "docs/bindings.md").read_text().partition("\n## C\n")[2]
    make, *commands = [line.strip().partition("  #")[0].strip() for line in section.splitlines() if line.startswith("    ")]
    assert make == "make host" and commands[-1].endswith(" 10")
    (bench.tmp / "host").symlink_to(TOP / "host")
    bench.sim()
    shell = "\n".join(commands).removesuffix(" 10") + " 1"
    status, out, err = bench.start(bench.pc_ns, "bash", "-ec", shell, cwd=bench.tmp).finish()
    assert status == 0 and out.startswith("identity "), err


def test_a_static_program(tmp_path):
    """What pkg-config says is enough, and the program needs no shared library."""
    folder = tmp_path / "lib/multiarch"
    (folder / "pkgconfig").mkdir(parents=True)
    shutil.copytree(HEADER, tmp_path / "include")
    (folder / "libfadelink.a").symlink_to(LIBRARY / "libfadelink.a")
    text = (TOP / "packaging/fadelink.pc").read_text().replace("@MULTIARCH@", "multiarch").replace("@VERSION@", "1.2")
    (folder / "pkgconfig/fadelink.pc").write_text(re.sub("^prefix=.*", f"prefix={tmp_path}", text, flags=re.M))
    words = f"cc -static -o {tmp_path}/program {TOP}/host/c/examples/receive.c $(pkg-config --static --cflags --libs fadelink)"
    made = subprocess.run(
        ["bash", "-ec", words], env={"PKG_CONFIG_PATH": folder / "pkgconfig", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr[-2000:]
    assert b"INTERP" not in subprocess.run(["readelf", "-l", tmp_path / "program"], capture_output=True, check=True).stdout
    found = subprocess.run([tmp_path / "program"], capture_output=True, text=True)
    assert found.returncode == 2 and found.stderr.startswith("usage: receive ")


def test_wrong_use_is_told(bench):
    bench.sim()
    source = bench.tmp / "abuse.c"
    source.write_text(ABUSE)
    status, out, err = bench.start(bench.pc_ns, compiled(bench, source), "eth0", FEBS[0]).finish()
    assert status == 0 and "all as it should be" in out, err


def test_the_header_is_c_plus_plus_too(bench):
    source = bench.tmp / "empty.cpp"
    source.write_text("#include <fadelink.h>\nint main() { return fadelink_error()[0]; }\n")
    program = compiled(bench, source, "g++", "-pedantic")
    assert subprocess.run([program]).returncode == 0


def test_the_header_names_every_function():
    """Nothing is exported that the header does not have, and the other way round."""
    library = subprocess.run(["nm", "-D", "--defined-only", LIBRARY / "libfadelink.so"], capture_output=True, text=True, check=True)
    exported = {line.split()[2] for line in library.stdout.splitlines() if " T fadelink_" in line}
    header = Path(HEADER / "fadelink.h").read_text()
    assert exported and all(f"{name}(" in header for name in exported)
    assert len(exported) == sum(line.startswith(("int", "void", "const char", "fadelink_")) for line in header.splitlines())


@pytest.mark.parametrize("backend", ["packet", "xdp"])
def test_a_forked_process_has_nothing_of_a_board(bench, backend):
    """All functions say so; what its parent closes is free at once though it lives."""
    sim = bench.sim()
    source = bench.tmp / "fork.c"
    source.write_text(FORK)
    process = bench.start(bench.pc_ns, compiled(bench, source), "eth0", FEBS[0], backend, stdin=subprocess.PIPE)
    for line in ("child\n", "closed\n"):
        assert process.popen.stdout.readline() == line, process.finish()
        if line == "closed\n":
            status, out, err = bench.receive("--quiet", "--packets", 20).finish()
            assert status == 0, out + err
        process.popen.stdin.write("\n")
        process.popen.stdin.flush()
    status, out, err = process.finish()
    assert status == 0, out + err
    assert bench.end_sim(sim)["boards"][0]["running"] is False
