-- Wireshark dissector of FADE-10G and FADE v1 (docs/protocol/fade10g.md, docs/protocol/fade1.md).
-- Use: tshark -X lua_script:tools/wireshark/fade.lua -r FILE, or copy it to the Wireshark plugin folder.

local fade = Proto("fade", "FADE")

local VERSION = 0x0100
local DATA, LAST, RESPONSE = 0xA5A5, 0xA5A6, 0xA55A
local ACK, NACK, IDENTIFY, RESET_BY, BLOCK_MARK = 0x0003, 0x0004, 0x0006, 0x0007, 0xB10C
local CHECKSUM_MARK, PERMIT_MARK = 0xC4EC, 0x9E12
local START = 0x0001
local DATA_LEN, DATA_HEADER, PACKET = 8218, 26, 8192 -- behind the Ethernet header
local LAST_WORDS_MAX = UInt64(1023)

-- FADE v1 has its frame type where FADE-10G has its version.
local V1_ACK, V1_DATA, V1_DATA_LEN, V1_HEADER, V1_PACKET = 0x0003, 0xA5A5, 1034, 10, 1024
local V1_START, V1_STATE, V1_STATE_RESETS = 0x0001, 0xA55A, 1
local v1_names = {
  [V1_START] = "START", [0x0002] = "STOP", [V1_ACK] = "ACK", [0x0005] = "RESET", [V1_DATA] = "Data",
  [V1_STATE] = "State",
}
local v1_states = { [0] = "idle", [1] = "running", [2] = "stopping", [3] = "ended", [4] = "reset" }

local names = {
  [0x0001] = "START", [0x0002] = "STOP", [ACK] = "ACK", [NACK] = "NACK", [0x0005] = "RESET",
  [IDENTIFY] = "IDENTIFY", [RESET_BY] = "RESET BY", [DATA] = "Data", [LAST] = "Last data", [RESPONSE] = "Command response",
}

local f = {
  version = ProtoField.uint16("fade.version", "Version", base.HEX),
  type = ProtoField.uint16("fade.type", "Type or code", base.HEX),
  sequence = ProtoField.uint16("fade.sequence", "Frame sequence"),
  packet = ProtoField.uint32("fade.packet", "Packet number"),
  delay = ProtoField.uint32("fade.delay", "Transmission delay"),
  stored = ProtoField.uint64("fade.stored", "Stored before it", base.HEX),
  csn = ProtoField.uint16("fade.csn", "Command sequence number"),
  argument = ProtoField.uint32("fade.argument", "Argument", base.HEX),
  response = ProtoField.bytes("fade.response", "Command response"),
  response_code = ProtoField.uint16("fade.response.code", "Code", base.HEX),
  response_csn = ProtoField.uint16("fade.response.csn", "Command sequence number"),
  response_value = ProtoField.uint64("fade.response.value", "Value", base.HEX),
  window = ProtoField.uint8("fade.identity.window", "Window, log2 of its packets"),
  running = ProtoField.bool("fade.identity.running", "Running", 8, nil, 0x01),
  stopping = ProtoField.bool("fade.identity.stopping", "Stopping", 8, nil, 0x02),
  block_acks = ProtoField.bool("fade.identity.block_acks", "Accepts block ACKs", 8, nil, 0x04),
  has_csn = ProtoField.bool("fade.identity.has_csn", "Knows a last command", 8, nil, 0x08),
  has_resets = ProtoField.bool("fade.identity.has_resets", "Counts RESETs", 8, nil, 0x10),
  has_checksum = ProtoField.bool("fade.identity.has_checksum", "Has a CRC of the words", 8, nil, 0x20),
  same_words = ProtoField.bool("fade.identity.same_words", "Sends the same words again", 8, nil, 0x40),
  last_csn = ProtoField.uint16("fade.identity.csn", "Sequence number of the last command"),
  transmission = ProtoField.uint16("fade.identity.transmission", "Transmission"),
  resets = ProtoField.uint8("fade.resets", "RESETs since START"),
  reset_by = ProtoField.ether("fade.reset_by", "Sender of the last RESET"),
  data = ProtoField.bytes("fade.data", "Data"),
  crc = ProtoField.uint32("fade.crc", "CRC of all words", base.HEX),
  permit = ProtoField.uint32("fade.permit", "Permit to begin", base.HEX),
  last_words = ProtoField.uint16("fade.last_words", "Words of the last packet"),
  valid_words = ProtoField.uint64("fade.valid_words", "Valid words"),
  set = ProtoField.uint16("fade.set", "Set"),
  state = ProtoField.uint16("fade.state", "State of the transmission", base.DEC, v1_states),
  packets = ProtoField.uint32("fade.packets", "Packets sent"),
  set_packet = ProtoField.uint16("fade.set_packet", "Packet of the set", base.DEC, nil, 0xFC00),
}
fade.fields = f

local malformed = ProtoExpert.new("fade.malformed", "Malformed FADE frame", expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("fade.unknown", "Unknown FADE version, type or code", expert.group.PROTOCOL, expert.severity.WARN)
fade.experts = { malformed, unknown }

-- A command response of 12 bytes; all zero if none was pending.
local function response(buffer, tree)
  local code = buffer(0, 2):uint()
  local branch = tree:add(f.response, buffer)
  if code == 0 then
    branch:append_text(" (none)")
    return ""
  end
  branch:add(f.response_code, buffer(0, 2))
  branch:add(f.response_csn, buffer(2, 2))
  local value = branch:add(f.response_value, buffer(4, 8))
  if code == IDENTIFY and buffer(4, 1):uint() == 1 then
    value:add(f.window, buffer(5, 1))
    for _, flag in ipairs({ f.running, f.stopping, f.block_acks, f.has_csn, f.has_resets, f.has_checksum, f.same_words }) do value:add(flag, buffer(6, 1)) end
    value:add(f.last_csn, buffer(7, 2))
    value:add(f.transmission, buffer(9, 2))
    if math.floor(buffer(6, 1):uint() / 16) % 2 == 1 then value:add(f.resets, buffer(11, 1)) end
  elseif code == START and buffer(4, 4):uint() == 0 and buffer(8, 4):uint() % 4 == 3 then
    value:add(f.permit, buffer(8, 4), math.floor(buffer(8, 4):uint() / 4))
  elseif code == RESET_BY then
    value:add(f.transmission, buffer(4, 2))
    value:add(f.reset_by, buffer(6, 6))
  end
  return string.format(", response to 0x%04x csn %d: 0x%s", code, buffer(2, 2):uint(), buffer(4, 8):bytes():tohex(true))
end

function fade.dissector(buffer, pinfo, tree)
  pinfo.cols.protocol = "FADE"
  local root = tree:add(fade, buffer())
  local function need(length, what)
    if buffer:len() >= length then return true end
    root:add_proto_expert_info(malformed, string.format("%d bytes end before the %s", buffer:len(), what))
    pinfo.cols.info = "Malformed: ends before the " .. what
    return false
  end

  -- The bits of a block ACK, behind the fields of an ACK.
  local function stored(at)
    if buffer:len() < at + 12 or buffer(at, 2):uint() ~= BLOCK_MARK then return "" end
    root:add(f.stored, buffer(at + 4, 8))
    return ", stored before it 0x" .. tostring(buffer(at + 4, 8):uint64():tohex())
  end

  if not need(4, "type") then return end
  local v1_name = v1_names[buffer(0, 2):uint()]
  if v1_name then
    local kind = buffer(0, 2):uint()
    root:add(f.type, buffer(0, 2)):append_text(" (FADE v1 " .. v1_name .. ")")
    local info = "v1 " .. v1_name
    if kind == V1_ACK or kind == V1_DATA then
      if not need(6, "packet number") then return end
      root:add(f.set, buffer(2, 2))
      root:add(f.set_packet, buffer(4, 2))
      info = string.format("%s set %d, packet %d", info, buffer(2, 2):uint(), math.floor(buffer(4, 2):uint() / 1024))
      if kind == V1_ACK then info = info .. stored(6) end
    end
    if kind == V1_DATA then
      if buffer:len() ~= V1_DATA_LEN then
        root:add_proto_expert_info(malformed, string.format("data frame of %d bytes: expected %d", buffer:len() + 14, V1_DATA_LEN + 14))
        pinfo.cols.info = "Malformed: wrong length of a data frame"
        return
      end
      local delay = buffer(6, 4):uint()
      -- Of a Fadelink board the two bits above tell what it can do.
      local ours = buffer(4, 2):uint() % 1024 == 0x2A5
      root:add(f.delay, buffer(6, 4), ours and delay % 0x40000000 or delay)
      root:add(f.data, buffer(V1_HEADER, V1_PACKET))
    end
    if kind == V1_START and buffer:len() >= 4 then
      root:add(f.transmission, buffer(2, 2))
      info = string.format("%s transmission %d", info, buffer(2, 2):uint())
      if buffer:len() >= 10 and buffer(4, 2):uint() == PERMIT_MARK then
        root:add(f.permit, buffer(6, 4))
        info = string.format("%s, permit 0x%08x", info, buffer(6, 4):uint())
      end
    end
    if kind == V1_STATE then
      if not need(10, "number of packets") then return end
      local state = v1_states[buffer(2, 2):uint()]
      root:add(f.state, buffer(2, 2))
      root:add(f.transmission, buffer(4, 2))
      root:add(f.packets, buffer(6, 4))
      if state == nil then root:add_proto_expert_info(unknown, "unknown state") end
      info = string.format("%s %s, transmission %d, %d packets", info, state or "unknown", buffer(4, 2):uint(), buffer(6, 4):uint())
      if buffer:len() >= 18 and buffer(10, 1):uint() == V1_STATE_RESETS then
        root:add(f.resets, buffer(11, 1))
        root:add(f.reset_by, buffer(12, 6))
        info = string.format("%s, %d RESETs", info, buffer(11, 1):uint())
      end
      if buffer:len() >= 26 and buffer(18, 2):uint() == CHECKSUM_MARK then
        root:add(f.last_words, buffer(20, 2))
        root:add(f.crc, buffer(22, 4))
        info = string.format("%s, CRC 0x%08x", info, buffer(22, 4):uint())
      end
      if buffer:len() >= 34 and buffer(26, 2):uint() == PERMIT_MARK then
        root:add(f.permit, buffer(30, 4))
        info = string.format("%s, permit 0x%08x", info, buffer(30, 4):uint())
      end
    end
    pinfo.cols.info = info
    return
  end
  root:add(f.version, buffer(0, 2))
  if buffer(0, 2):uint() ~= VERSION then
    root:add_proto_expert_info(unknown, "version is not 0x0100")
    pinfo.cols.info = string.format("Unknown version 0x%04x", buffer(0, 2):uint())
    return
  end
  local kind = buffer(2, 2):uint()
  local name = names[kind] or (kind >= 0x0100 and "User command") or nil
  root:add(f.type, buffer(2, 2)):append_text(" (" .. (name or "unknown") .. ")")
  if name == nil then
    root:add_proto_expert_info(unknown, "unknown code")
    pinfo.cols.info = string.format("Unknown code 0x%04x", kind)
    return
  end
  local info = name

  if kind == DATA or kind == LAST then
    if buffer:len() ~= DATA_LEN then
      root:add_proto_expert_info(malformed, string.format("data frame of %d bytes: expected %d", buffer:len() + 14, DATA_LEN + 14))
      pinfo.cols.info = "Malformed: wrong length of a data frame"
      return
    end
    root:add(f.sequence, buffer(4, 2))
    root:add(f.packet, buffer(6, 4))
    root:add(f.delay, buffer(10, 4))
    info = string.format("%s packet %d, sequence %d", name, buffer(6, 4):uint(), buffer(4, 2):uint())
    info = info .. response(buffer(14, 12), root)
    root:add(f.data, buffer(DATA_HEADER, PACKET))
    if kind == LAST then
      local words = buffer(DATA_HEADER + PACKET - 8, 8)
      -- In either byte order: of 1 to 1023 one reading is in range.
      local little = words:le_uint64() <= LAST_WORDS_MAX
      local count = little and words:le_uint64() or words:uint64()
      local has_crc = words(2, 2):le_uint() == CHECKSUM_MARK
      if has_crc then count = UInt64(words(0, 2):le_uint()) end
      if count > LAST_WORDS_MAX then
        root:add_proto_expert_info(malformed, string.format("valid words 0x%s: expected 0 to 1023, in either byte order", words:bytes():tohex(true)))
        pinfo.cols.info = "Malformed: impossible number of valid words"
        return
      end
      root:add(f.valid_words, words, count)
      info = info .. ", " .. tostring(count) .. " valid words"
      if has_crc then
        root:add_le(f.crc, words(4, 4))
        info = string.format("%s, CRC 0x%08x", info, words(4, 4):le_uint())
      end
    end
  elseif kind == RESPONSE then
    if not need(18, "command response") then return end
    info = info .. response(buffer(6, 12), root)
  elseif kind == ACK or kind == NACK then
    if not need(14, "transmission delay") then return end
    root:add(f.sequence, buffer(4, 2))
    root:add(f.packet, buffer(6, 4))
    root:add(f.delay, buffer(10, 4))
    info = string.format("%s packet %d, sequence %d", name, buffer(6, 4):uint(), buffer(4, 2):uint())
    if kind == ACK then info = info .. stored(14) end
  else
    if not need(10, "argument") then return end
    root:add(f.csn, buffer(4, 2))
    root:add(f.argument, buffer(6, 4))
    -- Bit 1 says that the permit is above.
    local argument = buffer(6, 4):uint()
    if kind == START and math.floor(argument / 2) % 2 == 1 then root:add(f.permit, buffer(6, 4), math.floor(argument / 4)) end
    info = string.format("%s 0x%04x, csn %d, argument 0x%08x", name, kind, buffer(4, 2):uint(), buffer(6, 4):uint())
  end
  pinfo.cols.info = info
end

DissectorTable.get("ethertype"):add(0xFADE, fade)
