"""The parameters and ports of a module of rtl/, and what its sources say of them."""

import re
from dataclasses import dataclass
from functools import cache

from support.sources import COMMENT, modules

HEADER = re.compile(r"(?://.*\n)+")
PARAMETER = re.compile(r"parameter\s+(?P<type>\w+(?:\s*\[.*?\])?(?:\s+unsigned)?)\s+(?P<name>\w+)\s*=\s*(?P<default>.*?),?")
PORT = re.compile(r"(?P<kind>input|output|inout)\s+(?P<type>wire|logic(?: signed)?|\w+::\w+)\s*(?P<width>(?:\[[^\]]*\]\s*)*)(?P<name>\w+),?")
# What a declaration has beside them.
OTHER = re.compile(r"module \w+ (?:#\(|\()|\) \(|localparam .*")
# Names that mean the same in every module.
SIDES = {"": "", "user_": " of the user side", "tx_": " of the transmit side", "rx_": " of the receive side"}
STREAM = {
    "tdata": "data",
    "tkeep": "which bytes of tdata are valid",
    "tvalid": "the word is valid",
    "tready": "the word is taken in a clock with tvalid",
    "tlast": "last word of a packet, frame or message",
    "tuser": "with tlast: the frame is bad",
    "start": "comes before the first word of a frame is taken, for senders that make frames on the fly",
}
CHANNELS = {"aw": "write address", "w": "data to write", "b": "answer to a write", "ar": "read address", "r": "answer to a read"}
CHANNEL = {
    "addr": "in bytes",
    "prot": "protection, which has no effect",
    "data": "the word",
    "strb": "which bytes to write",
    "resp": "0 is good",
    "valid": "it is valid",
    "ready": "it is taken in a clock with valid",
}


@dataclass
class Declared:
    """A parameter or a port. kind: parameter, input, output or inout; group: the comment above it; remark: the one behind it."""

    kind: str
    type: str
    name: str
    value: str
    group: str
    remark: str

    def standard(self):
        """The meaning that its name has in every module, or nothing."""
        if self.kind == "parameter":
            return ""
        if match := re.fullmatch(r"(\w+_|)(clk|rst)", self.name):
            side, what = match.groups()
            return {"clk": "clock", "rst": "reset"}[what] + SIDES[side] if side in SIDES else ""
        if match := re.fullmatch(r"[sm]_\w+_(\w+)", self.name):
            if match[1] in STREAM:
                return STREAM[match[1]]
            if channel := re.fullmatch(rf"({'|'.join(CHANNELS)})({'|'.join(CHANNEL)})", match[1]):
                return f"{CHANNELS[channel[1]]}: {CHANNEL[channel[2]]}"
        return ""


class Interface:
    """A module's header and declaration. The declaration has one parameter or port a line, and ends with a line `);`."""

    def __init__(self, text):
        # The module of a user may have none.
        header = HEADER.match(text)
        self.header = [line.removeprefix("//").removeprefix(" ") for line in header[0].splitlines()] if header else []
        start = re.search(r"^module (\w+)", text, re.M)
        self.name, self.parameters, self.ports = start[1], [], []
        self.body = COMMENT.sub("", text)
        self._read(text[start.start() :].splitlines())

    def _read(self, lines):
        group, is_open = "", False
        for line in lines:
            code, _, remark = (part.strip() for part in line.partition("//"))
            if code == ");":
                return
            if not code:
                group = f"{group} {remark}" if is_open and remark else remark
            elif match := PARAMETER.fullmatch(code):
                self.parameters.append(Declared("parameter", match["type"], match["name"], match["default"], group, remark))
            elif match := PORT.fullmatch(code):
                width = re.sub(r"\s+", "", match["width"])
                self.ports.append(Declared(match["kind"], f"{match['type']} {width}".strip(), match["name"], "", group, remark))
            elif OTHER.fullmatch(code):
                group = ""
            else:
                raise ValueError(f"{self.name}: {line.strip()}: expected one parameter or port")
            is_open = not code
        raise ValueError(f"{self.name}: its declaration has no end; expected a line `);`")

    @property
    def declared(self):
        return [*self.parameters, *self.ports]

    def paragraphs(self):
        """The header as blocks of lines, without the licence."""
        return [block for block in "\n".join(self.header[2:]).strip("\n").split("\n\n") if block.strip()]

    def said(self):
        """Meanings in the header, of sentences like `tx_ce, rx_ce: a byte passes the pins in this clock.`"""
        names, found = {item.name for item in self.declared}, {}
        for block in self.paragraphs():
            if "+--" in block:
                continue
            text = " ".join(block.split())
            for match in re.finditer(r"(?:^|(?<=[.;] ))([`\w]+(?:, [`\w]+)*): (.+?)(?=[.;](?: |$))", text):
                about = [name.strip("`") for name in match[1].split(", ")]
                if names.issuperset(about) and not match[2].startswith("see "):
                    found |= dict.fromkeys(about, match[2])
        return found

    def parts(self):
        """(module, the expressions that its names are connected to here, whether the others are connected by `.*`) of each instance."""
        known = modules()
        for match in re.finditer(r"^\s*(\w+)\s+(?:#\s*\(|\w+\s*\()", self.body, re.M):
            if match[1] in known and match[1] != self.name:
                text = self.body[match.start() : self.body.index(");", match.end())] + ")"
                yield match[1], dict(re.findall(r"\.(\w+)\s*\(\s*(.*?)\s*\)\s*[,)\n]", text)), ".*" in text

    def passed_on(self):
        """Meanings of the names that are connected to the same name of a part."""
        found = {}
        for part, expressions, every in self.parts():
            for name, meaning in interface(part).meanings().items():
                expression = expressions.get(name, name if every else "")
                if meaning and re.fullmatch(rf"{name}(\[.*\])?", expression):
                    found.setdefault(name, meaning)
        return found

    def meanings(self):
        """Name to meaning: the remark behind it, else what the header says, else what the name always means, else what a part says that it is
        passed on to; empty if there is nothing.
        """
        remarks = {item.name: item.remark for item in self.declared if item.remark}
        standard = {item.name: item.standard() for item in self.declared if item.standard()}
        found = self.passed_on() | standard | self.said() | remarks
        return {item.name: found.get(item.name, "") for item in self.declared}


@cache
def interface(name):
    """The interface of a module of rtl/."""
    return Interface(modules()[name].read_text())
