"""crc32 against zlib, and its two halves: the network is linear."""

import zlib

import pytest
from support.block import Timer, cocotb, rng, run


@pytest.mark.parametrize("width", [1, 8])
def test_crc32(width):
    run("crc32", {"BYTES": width})


async def step(dut, crc, data):
    dut.crc_in.value = crc
    dut.data.value = int.from_bytes(data, "little")
    await Timer(1, "ns")
    return int(dut.crc_out.value)


@cocotb.test()
async def agrees_with_zlib(dut):
    random = rng("crc32")
    width = len(dut.data) // 8
    for _ in range(300):
        data = random.randbytes(width * random.randrange(1, 60))
        crc = 0xFFFFFFFF
        for at in range(0, len(data), width):
            crc = await step(dut, crc, data[at : at + width])
        assert crc ^ 0xFFFFFFFF == zlib.crc32(data), data.hex()


@cocotb.test()
async def state_and_data_add(dut):
    random = rng("crc32 halves")
    width = len(dut.data) // 8
    for _ in range(300):
        data, crc = random.randbytes(width), random.randrange(1 << 32)
        assert await step(dut, crc, data) == await step(dut, crc, bytes(width)) ^ await step(dut, 0, data)
        assert await step(dut, 0, bytes(width)) == 0, "zero bytes leave a state of zero"
