"""The kernel driver in Debian's kernel, against the simulated boards."""

import pytest
from guest import judge, start
from system_bench import FEBS

READ = "abi_reader /dev/l3_fpga{i} eth0 {mac} {bytes}"


@pytest.mark.parametrize("link", ["loss=0", "loss=0.02"])
def test_published_abi(bench, link):
    guest = start(bench, "insmod /lib/fadelink.ko && " + READ.format(i=0, mac=FEBS[0], bytes=8_000_000))
    bench.sim("--packet-socket", "--link", link, iface="fade0")
    assert "words, all right" in judge(guest.finish(200))
