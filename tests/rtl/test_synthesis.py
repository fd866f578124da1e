"""Yosys takes the cores and boards: no latch, no loop, the packet memory in block RAM and nothing else there.

Mapping to cells takes most of the time: of each core one configuration is mapped, of the large ones its memories and
registers; the other ones, and the rest, in `make test-long`.
"""

import pytest
from support.crossings import crossings
from support.sweep import long
from support.synth import elaborate, synthesize, totals


# `clean`: what goes from one clock to another does so in a module of rtl/common that is made for it.
@pytest.mark.parametrize(
    "top,parameters,clean",
    [
        ("fade_core", {"WIDTH": 8, "PACKETS": 16}, True),
        long("fade_core", {"WIDTH": 64, "PACKETS": 32}, True),
        ("fade_core", {"PROTOCOL": 1, "WIDTH": 8}, True),
        ("tcp_core", {"WIDTH": 8, "STREAMS": 2, "MTU": 1500}, True),
        ("udp_core", {"WIDTH": 8, "PAYLOAD_MAX": 1472, "ECHO_BYTES": 2048}, False),
        ("xgmii_mac", {}, True),
        ("fadc_core", {"MODULES": 4, "CHANNELS": 2, "LINKS": 4, "BITS": 10}, True),
        long("fade_axi", {"WIDTH": 64}, True),
        long("tcp_axi", {"WIDTH": 8, "STREAMS": 2}, True),
        long("udp_axi", {"PULL": 1}, False),
        ("ptp_axi", {}, True),
        ("example_board", {"DESIGN": 0, "WIDTH": 8}, True),
        long("example_board", {"DESIGN": 1, "WIDTH": 64, "STREAMS": 1}, False),
        long("example_board", {"DESIGN": 2, "WIDTH": 8}, False),
        long("example_board", {"DESIGN": 3, "WIDTH": 64}, False),
    ],
)
def test_other_configurations_elaborate(top, parameters, clean):
    unsafe = [str(crossing) for crossing in crossings(top, elaborate(top, **parameters)) if not crossing.is_safe()]
    assert (unsafe == []) == clean, unsafe


@pytest.mark.long
@pytest.mark.parametrize(
    "protocol,width,packets,packet_bytes,most",
    [(10, 8, 16, 8192, 1562), (10, 64, 32, 8192, 1534), (1, 8, 32, 1024, 1184)],
)
def test_fade_core_synthesizes(protocol, width, packets, packet_bytes, most):
    cells = synthesize("fade_core", PROTOCOL=protocol, WIDTH=width, PACKETS=packets)
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    luts, ffs, brams = totals(cells)
    assert brams == packets * packet_bytes * 8 / 32768 + 1, "36 Kbit blocks hold 32 Kbit of data words; one for the records"
    # The mapping of the same sources differs by a hundredth with the files that are read beside them.
    assert luts < most and ffs < (1190 if width == 64 else 1460), (luts, ffs)


@pytest.mark.long
def test_xgmii_mac_synthesizes():
    cells = synthesize("xgmii_mac")
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    luts, ffs, brams = totals(cells)
    assert luts <= 1573 and ffs < 1500 and brams == 0


@pytest.mark.parametrize("width,streams,mtu,mapped", [long(64, 1, 9000, False), long(64, 1, 9000, True), long(8, 2, 1500, True)])
def test_tcp_core_synthesizes(width, streams, mtu, mapped):
    """Frames, one echo request and the records of received frames are in block RAM; the socket buffers are not part of the core."""
    cells = synthesize("tcp_core", luts=mapped, WIDTH=width, STREAMS=streams, MTU=mtu)
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    luts, ffs, brams = totals(cells)
    assert brams == {9000: 8, 1500: 1}[mtu] + 2 and luts < (2500 if width == 64 else 2700) + 500 * streams and ffs < (2500 if width == 64 else 2700)


@pytest.mark.parametrize("width,mapped", [long(64, False), long(64, True), long(8, True)])
def test_udp_core_synthesizes(width, mapped):
    """The stream's datagrams, one echo request, PTP's program, memory and messages are in block RAM, and no frame else."""
    cells = synthesize("udp_core", luts=mapped, WIDTH=width, PAYLOAD_MAX=1472, ECHO_BYTES=2048)
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    luts, ffs, brams = totals(cells)
    # 36 Kbit blocks, or halves of 18: two (four) slots of 256 words, one echo request; PTP has two and a half.
    assert brams <= 6.5 and luts < (4500 if width == 64 else 3600) and ffs < (4500 if width == 64 else 3200)


@pytest.mark.long
def test_fadc_link_synthesizes():
    """Inboxes and the list of windows are in block RAM, the burst buffer is outside; one multiplier a module."""
    cells = synthesize("fadc_link", MODULES=2, CHANNELS=4, BITS=12)
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    luts, ffs, brams = totals(cells)
    assert brams <= 6 and cells["DSP48E1"] == 2 and luts < 4500 and ffs < 4500


@pytest.mark.long
def test_fadc_core_synthesizes():
    """Links share the modules: as many as there are, each in one."""
    cells = synthesize("fadc_core", MODULES=2, CHANNELS=2, LINKS=2, BITS=10)
    assert not [name for name in cells if "latch" in name.lower() or name.startswith("LD")], cells
    assert cells["DSP48E1"] == 2
