"""The cores with AXI4-Stream and AXI4-Lite on their sides, against the models of cocotbext-axi and the rules of the handshake."""

import cocotb
import pytest
from cocotb.triggers import First
from cocotbext.axi import AxiStreamFrame
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from support.axi import REGISTERS, Processor, check_map, memory, sink, source, stream_rules
from support.block import C, ClockCycles, ReadOnly, RisingEdge, package_constants, rng, run, start
from support.sweep import long

FADC = package_constants("fadc/fadc_pkg.sv")
UDPC = package_constants("udp/udp_pkg.sv")
CLOCKS = {"user_clk": 7000, "tx_clk": 8000, "rx_clk": 8002}
MAC, PC = bytes.fromhex("02fade000001"), bytes.fromhex("02fade0000f0")
IP_CORE, IP_PC = "10.9.0.2", "10.9.0.1"


@pytest.mark.parametrize(
    "toplevel,parameters",
    [
        ("fade_axi", {"WIDTH": 64, "PACKETS": 4}),
        long("fade_axi", {"WIDTH": 8, "PACKETS": 4}),
        long("tcp_axi", {"WIDTH": 64, "STREAMS": 2, "TICK_CLOCKS": 4}),
        ("tcp_axi", {"WIDTH": 8, "STREAMS": 1, "TICK_CLOCKS": 4}),
        long("udp_axi", {"WIDTH": 8, "STREAMS": 2, "PAYLOAD_MAX": 400, "ECHO_BYTES": 256, "TICK_CLOCKS": 100}),
        ("udp_axi", {"WIDTH": 64, "STREAMS": 1, "PAYLOAD_MAX": 400, "ECHO_BYTES": 256, "TICK_CLOCKS": 100}),
        ("fadc_axi", {"MODULES": 2, "CHANNELS": 2, "LINKS": 2}),
    ],
)
def test_axi(toplevel, parameters):
    run("axi", parameters, toplevel)


@pytest.mark.long
@pytest.mark.parametrize("toplevel,parameters", [("fade_axi", {"WIDTH": 64, "PACKETS": 4}), ("fadc_axi", {"MODULES": 2, "CHANNELS": 2, "LINKS": 2})])
def test_netlist(toplevel, parameters):
    """Yosys reads structures in its own way: what it makes of them does the same."""
    run("axi", parameters, toplevel, netlist=True)


def width_of(dut):
    return len(dut.s_mac_tdata)


class Link:
    """A link core behind its AXI sides: processor, frames to and from the MAC."""

    def __init__(self, dut, key, registers):
        self.dut, self.registers = dut, registers
        self.rules = stream_rules(dut, dut.tx_clk, rst=dut.tx_rst)
        self.cpu = Processor(dut, dut.user_clk, key)
        self.out = sink(dut, dut.tx_clk, "m_axis", key)
        # A MAC gives the words of a frame as they come from the line, maybe with pauses.
        self.into = source(dut, dut.rx_clk, "s_mac", (key, "mac"))

    async def frame(self, clocks=200_000):
        """The next frame, without padding."""
        taken = await First(cocotb.start_soon(self.out.recv()), ClockCycles(self.dut.tx_clk, clocks))
        assert taken is not None and hasattr(taken, "tdata"), "no frame comes"
        assert not taken.tuser or not any([taken.tuser] if isinstance(taken.tuser, int) else taken.tuser)
        return bytes(taken.tdata)

    async def send(self, frame):
        await self.into.send(AxiStreamFrame(frame.ljust(60, b"\0"), tuser=0))

    async def get(self, name):
        return await self.cpu.get(self.registers, name)


async def begin(dut, key, registers, clocks=CLOCKS):
    dut.mac_stat.value = 0
    for name in ("m_axis_start",):
        if hasattr(dut, name):
            getattr(dut, name).value = 0
    link = Link(dut, key, registers)
    await start(dut, clocks, ["rst"])
    await ClockCycles(dut.user_clk, 20)
    return link


# ---- FADE-10G -------------------------------------------------------------------------------------
@cocotb.test(timeout_time=20, timeout_unit="ms")
async def fade_axi_registers(dut):
    dut.s_axis_tvalid.value = 0
    link = await begin(dut, "fade map", REGISTERS.FADE)
    assert await link.get("counters.transmit.sent") == 0xFFFFFFFF, "in reset"
    memory(dut, dut.user_clk, "fade map")
    await check_map(link.cpu, REGISTERS.FADE, "fade")
    await link.cpu.put(REGISTERS.FADE, control=1)
    assert await link.get("version") == 0x0A << 24 | 2 << 8
    await ClockCycles(dut.user_clk, 20)
    assert await link.get("counters.transmit.sent") == 0
    for _ in range(3):
        dut.mac_stat.value = 1 << 3
        await RisingEdge(dut.rx_clk)
    dut.mac_stat.value = 0
    await ClockCycles(dut.user_clk, 20)
    assert await link.get("counters.mac.rx_bad_fcs") == 3


def fade_request(code, csn, argument=0):
    head = MAC + PC + C["ETHERTYPE"].to_bytes(2, "big") + C["VERSION"].to_bytes(2, "big")
    fields = code.to_bytes(2, "big") + csn.to_bytes(2, "big") + argument.to_bytes(4, "big")
    return (head + fields + bytes(4) * (code == C["ACK"])).ljust(C["REQUEST_LEN"], b"\xa5")


async def fade_command(link, code, csn, argument=0, take=None):
    """The answer to a command, from a frame of its own or from a data frame; `take` gets those."""
    await link.send(fade_request(code, csn, argument))
    while True:
        frame = await link.frame()
        kind = int.from_bytes(frame[16:18], "big")
        is_data = kind in (C["TYPE_DATA"], C["TYPE_LAST"])
        if is_data and take:
            await take(frame)
        answer = frame[28:40] if is_data else frame[20:32]
        if answer[:4] == code.to_bytes(2, "big") + csn.to_bytes(2, "big"):
            return int.from_bytes(answer[4:], "big")


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def fade_axi_a_run_and_user_commands(dut):
    """Words in, frames out, with pauses at every side; user commands reach a memory on m_axil."""
    random = rng("fade axi", width_of(dut))
    link = await begin(dut, f"fade {width_of(dut)}", REGISTERS.FADE)
    ram = memory(dut, dut.user_clk, "fade", size=1024)
    words = source(dut, dut.user_clk, "s_axis", "fade words", byte_lanes=1)
    await link.cpu.put(REGISTERS.FADE, mac_low=int.from_bytes(MAC[2:], "big"), mac_high=int.from_bytes(MAC[:2], "big"), control=1)
    await ClockCycles(dut.user_clk, 20)
    sent = [random.getrandbits(64) for _ in range(3 * 1024 + 77)]
    await words.send(sent)
    got, done = [], []

    async def take(frame):
        """Confirms a data frame."""
        packet = int.from_bytes(frame[20:24], "big")
        if packet == len(got) // 1024:
            is_last = int.from_bytes(frame[16:18], "big") == C["TYPE_LAST"]
            data = frame[40 : 40 + 8 * int.from_bytes(frame[-8:], "little")] if is_last else frame[40:]
            got.extend(int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data), 8))
            done.append(is_last)
        await link.send(fade_request(C["ACK"], int.from_bytes(frame[18:20], "big"), packet))

    assert await fade_command(link, C["CMD_START"], 1, take=take) == 0
    assert int(dut.user_running.value) == 1 and await link.get("status") == 1
    while len(got) < 3 * 1024:
        await take(await link.frame())
    for csn in range(2, 8):
        register, value = random.randrange(256), random.getrandbits(32)
        assert await fade_command(link, 0x0200 | register, csn, value, take) == value
        assert ram.read(4 * register, 4) == value.to_bytes(4, "little")
        ram.write(4 * register, (value ^ 0xFF).to_bytes(4, "little"))
        assert await fade_command(link, 0x0100 | register, csn + 100, 0, take) == value ^ 0xFF
    assert await fade_command(link, 0x0300, 50, 0, take) == 2**64 - 1, "not a code of ours"
    assert await fade_command(link, C["CMD_STOP"], 60, take=take) == 0
    while not any(done):
        await take(await link.frame())
    assert got == sent and link.rules.waits > 100
    await ClockCycles(dut.user_clk, 200)
    assert await link.get("status") == 0
    assert await link.get("counters.transmit.acknowledged") == 4 and await link.get("counters.transmit.sent") >= 4


# ---- TCP ------------------------------------------------------------------------------------------
def number(ip):
    return int.from_bytes(bytes(map(int, ip.split("."))), "big")


def mac_text(mac):
    return ":".join(f"{byte:02x}" for byte in mac)


async def ip_settings(link, **values):
    await link.cpu.put(
        link.registers, mac_low=int.from_bytes(MAC[2:], "big"), mac_high=int.from_bytes(MAC[:2], "big"), address=number(IP_CORE),
        mask=number("255.255.255.0"), gateway=number("10.9.0.254"), peer=number(IP_PC), **values,
    )  # fmt: skip
    await ClockCycles(link.dut.user_clk, 20)


async def answer_arp(link, frame):
    """Answers a request for the peer's address: whether the frame was one."""
    packet = Ether(frame)
    if ARP not in packet:
        return False
    if packet[ARP].op == 1 and packet[ARP].pdst == IP_PC:
        reply = Ether(src=mac_text(PC), dst=mac_text(MAC)) / ARP(op=2, hwsrc=mac_text(PC), psrc=IP_PC, hwdst=mac_text(MAC), pdst=IP_CORE)
        await link.send(bytes(reply))
    return True


async def packet(link, layer, clocks=200_000):
    """The next packet with a layer."""
    while True:
        frame = await link.frame(clocks)
        if not await answer_arp(link, frame) and layer in Ether(frame):
            return Ether(frame)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def tcp_axi_registers(dut):
    dut.s_axis_tvalid.value = 0
    link = await begin(dut, "tcp map", REGISTERS.TCP)
    await check_map(link.cpu, REGISTERS.TCP, "tcp")
    await link.cpu.put(REGISTERS.TCP, streams=0, control=1)
    assert await link.get("version") == 0x10 << 24 | 1 << 8
    await ClockCycles(dut.user_clk, 20)
    assert await link.get("counters.stream0.sent") == 0 and await link.get("counters.drop_full") == 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def tcp_axi_streams(dut):
    """Each stream connects, its words arrive in order with pauses at every side, and it is closed."""
    streams = len(dut.s_axis_tvalid)
    link = await begin(dut, f"tcp {width_of(dut)}", REGISTERS.TCP)
    random = rng("tcp axi", width_of(dut))
    sent = [[random.getrandbits(64) for _ in range(900)] for _ in range(streams)]
    cocotb.start_soon(give(dut, sent, "tcp"))
    await ip_settings(link, ports=10000 << 16 | 5000, mtu=1500, control=0b11)
    await link.cpu.put(REGISTERS.TCP, streams=2**streams - 1)
    got, next_of, sequence = [b""] * streams, [None] * streams, [0x1000] * streams
    closed = set()
    while len(closed) < streams:
        frame = await packet(link, TCP)
        segment = frame[TCP]
        which = (segment.sport - 5000) % 16
        data = bytes(segment.payload)[: frame[IP].len - 20 - segment.dataofs * 4]
        flags = "A"
        if segment.flags.S:
            next_of[which], flags = (segment.seq + 1) % 2**32, "SA"
        elif segment.seq == next_of[which]:
            got[which] += data
            next_of[which] += len(data)
            if segment.flags.F:
                next_of[which] += 1
                closed.add(which)
                flags = "FA"
        elif not data:
            continue
        options = [("MSS", 1000)] if "S" in flags else []
        reply = TCP(sport=10000, dport=segment.sport, flags=flags, seq=sequence[which], ack=next_of[which], window=20000, options=options)
        if segment.flags.S or data or segment.flags.F:
            await link.send(bytes(Ether(src=mac_text(PC), dst=mac_text(MAC)) / IP(src=IP_PC, dst=IP_CORE) / reply))
        if "S" in flags:
            sequence[which] += 1
        if sum(map(len, got)) == 8 * 900 * streams and not closed:
            assert await link.get("connections") & 0xFFFF == 2**streams - 1
            await link.cpu.put(REGISTERS.TCP, streams=0)
    for which in range(streams):
        assert [int.from_bytes(got[which][i : i + 8], "little") for i in range(0, len(got[which]), 8)] == sent[which]
        assert await link.get(f"counters.stream{which}.sent") >= 8
    assert link.rules.waits > 100


async def give(dut, sent, key):
    """Words into the streams of a core, which are vectors, with pauses."""
    random = rng("give", key)
    left = [list(reversed(words)) for words in sent]
    offered = [False] * len(sent)
    while True:
        for i, words in enumerate(left):
            offered[i] = offered[i] or (bool(words) and random.random() < 0.7)
        dut.s_axis_tdata.value = sum(words[-1] << 64 * i for i, words in enumerate(left) if offered[i] and words)
        dut.s_axis_tvalid.value = sum(1 << i for i, is_offered in enumerate(offered) if is_offered)
        dut.s_axis_tlast.value = 0
        await ReadOnly()
        ready = int(dut.s_axis_tready.value)
        await RisingEdge(dut.user_clk)
        for i, words in enumerate(left):
            if offered[i] and ready >> i & 1:
                words.pop()
                offered[i] = False


# ---- UDP/IP -----------------------------------------------------------------------------------------
@cocotb.test(timeout_time=20, timeout_unit="ms")
async def udp_axi_registers(dut):
    dut.s_axis_tvalid.value = 0
    link = await begin(dut, "udp map", REGISTERS.UDP)
    await check_map(link.cpu, REGISTERS.UDP, "udp")
    await link.cpu.put(REGISTERS.UDP, control=1)
    assert await link.get("version") == 0x11 << 24 | 1 << 8
    await ClockCycles(dut.user_clk, 20)
    assert await link.get("counters.datagrams") == 0 and await link.get("counters.drop_port") == 0


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def udp_axi_streams_echo_and_slow_control(dut):
    streams = len(dut.s_axis_tvalid)
    link = await begin(dut, f"udp {width_of(dut)}", REGISTERS.UDP)
    ram = memory(dut, dut.tx_clk, "udp", size=2**16)
    random = rng("udp axi", width_of(dut))
    payload = 200
    full = (payload - 8) // 8
    sent = [[random.getrandbits(64) for _ in range(20 * full)] for _ in range(streams)]
    cocotb.start_soon(give(dut, sent, "udp"))
    await ip_settings(link, ports=10000 << 16 | 6000, payload=payload, control=1 | 2 | (2**streams - 1) << 8)
    got, sequence = [[] for _ in range(streams)], 0
    ether = Ether(src=mac_text(PC), dst=mac_text(MAC)) / IP(src=IP_PC, dst=IP_CORE)
    waits = None  # what the peer asked, and the answer to it

    async def ask():
        nonlocal sequence, waits
        sequence += 1
        match sequence % 3:
            case 0:
                data = random.randbytes(random.randrange(1, 200))
                await link.send(bytes(ether / ICMP(type=8, id=7, seq=sequence) / data))
                waits = ("echo", data)
            case 1:
                register, value = random.randrange(2**14), random.getrandbits(32)
                request = sequence.to_bytes(4, "big") + b"\x02\0\0\0" + register.to_bytes(4, "big") + value.to_bytes(4, "big")
                await link.send(bytes(ether / UDP(sport=5000, dport=UDPC["CONTROL_PORT"]) / request))
                waits = ("write", sequence.to_bytes(4, "big") + b"\x82\0\0\0" + request[8:], register, value)
            case 2:
                register = random.choice([random.randrange(2**14), 2**14])
                request = sequence.to_bytes(4, "big") + b"\x01\0\0\0" + register.to_bytes(4, "big") + bytes(4)
                value = int.from_bytes(ram.read(4 * register, 4), "little") if register < 2**14 else 0
                await link.send(bytes(ether / UDP(sport=5000, dport=UDPC["CONTROL_PORT"]) / request))
                status = 0 if register < 2**14 else UDPC["STATUS_ADDRESS"]
                waits = ("read", sequence.to_bytes(4, "big") + bytes([0x81, status, 0, 0]) + register.to_bytes(4, "big"), status, value)

    answered = 0
    while answered < 12 or min(map(len, got)) < 20 * full:
        if waits is None and answered < 12 and all(got):  # an answer needs a known path
            await ask()
        frame = await packet(link, IP)
        assert frame.dst == mac_text(PC) and frame[IP].src == IP_CORE
        if ICMP in frame:
            assert waits[0] == "echo" and bytes(frame[ICMP].payload)[: len(waits[1])] == waits[1]
            waits, answered = None, answered + 1
            continue
        data = bytes(frame[UDP].payload)[: frame[UDP].len - 8]
        assert frame[UDP].chksum
        if frame[UDP].dport == 5000:
            assert data.startswith(waits[1])
            if waits[0] == "write":
                assert ram.read(4 * waits[2], 4) == waits[3].to_bytes(4, "big")[::-1]
            elif waits[2] == 0:
                assert int.from_bytes(data[12:16], "big") == waits[3]
            waits, answered = None, answered + 1
            continue
        which = frame[UDP].dport - 10000
        assert frame[UDP].sport == 6000 + which and int.from_bytes(data[:4], "big") * full == len(got[which])
        count = int.from_bytes(data[4:6], "big")
        got[which] += [int.from_bytes(data[i : i + 8], "little") for i in range(8, 8 + 8 * count, 8)]
    assert got == sent and link.rules.waits > 100
    assert await link.get("counters.datagrams") == 20 * streams
    assert await link.get("status") & 0xFF == 2**streams - 1, "the paths are known"


# ---- FADC -----------------------------------------------------------------------------------------
@cocotb.test(timeout_time=20, timeout_unit="ms")
async def fadc_axi_windows_with_a_pulse(dut):
    dut.samples.value = dut.time_now.value = dut.time_locked.value = dut.m_axis_tready.value = 0
    cpu = Processor(dut, dut.clk, "fadc")
    rules = stream_rules(dut, dut.clk)
    await start(dut, {"clk": 8000}, ["rst"])
    await check_map(cpu, REGISTERS.FADC, "fadc")
    assert await cpu.get(REGISTERS.FADC, "version") == 0x12 << 24 | 1 << 8
    await cpu.put(
        REGISTERS.FADC, control=0, source_id=70, record_low=5, record_high=0, seconds_low=9, seconds_high=0, nanoseconds=0, window_ticks=128,
        timeout=1000, keepalive=0, limit=6, modules=0b11,
    )  # fmt: skip
    # Of every channel: threshold 100 above a pedestal of 0 (docs/fadc.md).
    for channel in range(2):
        for item, value in enumerate((100, 0)):
            await cpu.put(REGISTERS.FADC, configuration=1 << 31 | 1 << 26 | item << 20 | channel << 16 | value)
    await cpu.put(REGISTERS.FADC, control=0b11)
    messages = [[], []]
    current = [[], []]
    random = rng("fadc axi")
    for clock in range(4000):
        # A pulse in module 1, channel 0.
        dut.samples.value = 500 << 48 if clock in (150, 151, 152) else 0
        dut.m_axis_tready.value = random.getrandbits(2)
        await ReadOnly()
        taken = int(dut.m_axis_tvalid.value) & int(dut.m_axis_tready.value)
        for link in range(2):
            if taken >> link & 1:
                current[link].append(int(dut.m_axis_tdata.value) >> 64 * link & 2**64 - 1)
                if int(dut.m_axis_tlast.value) >> link & 1:
                    messages[link].append(current[link])
                    current[link] = []
        await RisingEdge(dut.clk)
    assert [len(found) for found in messages] == [6, 6] and rules.waits > 10
    for link in range(2):
        for index, message in enumerate(messages[link]):
            header = b"".join(word.to_bytes(8, "little") for word in message[:6])
            assert int.from_bytes(header[:4], "little") == 70 + link and FADC["MAGIC"].to_bytes(4, "little") in header
            assert (5 + index).to_bytes(8, "little") in header
    assert await cpu.get(REGISTERS.FADC, "counters.link1.messages") == 6
    hits = [await cpu.get(REGISTERS.FADC, f"counters.link{link}.hits") for link in range(4)]
    assert hits == [0, 1, 0, 0]
