"""The rule, which knows nothing of the others: what is called complete is the record of a run of the board, from its first word to its
last. What is not has a reason."""

import json

PROMISE = "what is called complete is the record of what the board took from its source; else a reason is told"
FILLER = b"\xa5"
FADE1_PACKET = 1024


class Wrong(AssertionError):
    """Something was called complete and is not, or nobody says why it is not."""


def agree(what, report):
    """A report, or a part of it, says one thing, and why: whether it is complete."""
    complete, verdict, reasons = report["complete"], report.get("verdict"), report.get("reasons", [])
    if verdict is not None and complete != (verdict == "complete"):
        raise Wrong(f"{what}: complete is {complete}, and the verdict is {verdict}")
    if complete and reasons:
        raise Wrong(f"{what}: complete, and there are reasons: {reasons}")
    if any(not reason.get("reason") or not reason.get("text") for reason in reasons):
        raise Wrong(f"{what}: a reason without words: {reasons}")
    return complete


def described(path):
    """What the description of a file says; None if there is none, as of events, or as a program leaves that was killed or has no disk."""
    description = path.with_name(f"{path.name}.json")
    text = description.read_text() if description.exists() else ""
    return json.loads(text)["complete"] if text.rstrip().endswith("}") else None


def same(found, expected):
    """Bytes that are the same."""
    if found[: len(expected)] == expected[: len(found)]:
        return min(len(found), len(expected))
    return next(i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b)


def filled(data):
    """FADE v1: its last packet is filled up, and the report says that it is FADE v1."""
    return data.ljust(-(-len(data) // FADE1_PACKET) * FADE1_PACKET, FILLER)


def compare(who, path, possible):
    """A file that is called complete is one of the possible ones: its words."""
    found = path.read_bytes() if path.exists() else b""
    if found not in possible:
        nearest = max(possible, key=lambda one: same(found, one), default=b"")
        raise Wrong(
            f"{who} says complete, and {path.name} differs from the record at byte {same(found, nearest)}: {len(found)} bytes, the source gave {len(nearest)}"
        )
    return len(found) // 8


def named(status, report, err):
    """What is not complete has its reason in the report. A program without a report says on standard error what went wrong."""
    reasons = '"reason": "' in json.dumps(report or {})
    if not reasons and not err.strip():
        raise Wrong(f"status {status}, not complete, and no reason is told: {report}")
