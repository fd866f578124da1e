"""crc32 against zlib, for every count."""

import zlib

import pytest
from support.block import Timer, cocotb, rng, run


@pytest.mark.parametrize("width", [1, 8])
def test_crc32(width):
    run("crc32", {"BYTES": width})


@cocotb.test()
async def agrees_with_zlib(dut):
    random = rng("crc32")
    width = len(dut.data) // 8
    for _ in range(300):
        data = random.randbytes(random.randrange(1, 60))
        crc = 0xFFFFFFFF
        at = 0
        while at < len(data):
            count = min(random.randint(1, width), len(data) - at)
            piece = data[at : at + count]
            at += count
            # Bytes beyond the count must not matter.
            noise = random.randbytes(width - count)
            dut.crc_in.value = crc
            dut.data.value = int.from_bytes(piece + noise, "little")
            dut.count.value = count
            await Timer(1, "ns")
            crc = int(dut.crc_out.value)
        assert crc ^ 0xFFFFFFFF == zlib.crc32(data), data.hex()


@cocotb.test()
async def count_zero_keeps_the_state(dut):
    if len(dut.data) == 8:
        return  # one byte a clock: there is no count
    dut.crc_in.value = 0x12345678
    dut.data.value = 0
    dut.count.value = 0
    await Timer(1, "ns")
    assert int(dut.crc_out.value) == 0x12345678
