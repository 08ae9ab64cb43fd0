#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
stack.py - whether the chains of calls of the BPF programs fit into the stack that Linux 6.1 grants.

    stack.py check OBJECT...   lint: nothing, or "OBJECT: chain of calls"; exit 1
    stack.py show OBJECT...    the deepest chain of each program

The verifier adds up the frames of a chain, each rounded up to 32 bytes, and refuses more than 512 in
all ("combined stack size of N calls is M. Too large") and more than 8 frames. Newer kernels round to
16 where programs are compiled, and so load what 6.1 does not: without this only tests/vm would notice.

The frames are read from the instructions, as the verifier does: the lowest offset from R10 that a
function uses. That needs no debug information and no compiler's tool.
"""

import struct
import sys

STACK_MAX = 512
FRAME_UNIT = 32
FRAMES_MAX = 8

EM_BPF = 247
SHT_SYMTAB, SHT_REL = 2, 9
STT_FUNC, STT_SECTION = 2, 3
R10 = 10
LD_IMM64, CALL, MOV64_X, ADD64_K = 0x18, 0x85, 0xbf, 0x07
PSEUDO_CALL = 1		# in the source register of CALL: one of the object's own functions
LDX, ST, STX = 1, 2, 3	# classes: the lowest three bits of the code


class Function:
    def __init__(self, name, section, start, size):
        self.name, self.section, self.start, self.end = name, section, start, start + size
        self.frame, self.calls = 0, []


def read_sections(data):
    if data[:4] != b"\x7fELF" or data[4:6] != b"\x02\x01" or \
       struct.unpack_from("<H", data, 18)[0] != EM_BPF:
        raise ValueError("not a little-endian BPF object")
    offset, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = []
    for i in range(count):
        _, kind, _, _, at, length, link, info, _, entry = \
            struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size)
        sections.append((kind, data[at:at + length], link, info, entry))
    return sections


def read_symbols(sections):
    """(name, type, section, value, size) of each symbol."""
    symbols = []
    for kind, content, link, _, entry in sections:
        if kind != SHT_SYMTAB:
            continue
        names = sections[link][1]
        for at in range(0, len(content), entry):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", content, at)
            text = names[name:names.index(b"\0", name)].decode()
            symbols.append((text, info & 15, section, value, size))
    return symbols


def read_relocations(sections, symbols):
    """{(section, offset): (section, value)} of what a relocation names."""
    found = {}
    for kind, content, _, info, entry in sections:
        if kind != SHT_REL:
            continue
        for at in range(0, len(content), entry):
            offset, symbol = struct.unpack_from("<QQ", content, at)
            _, _, section, value, _ = symbols[symbol >> 32]
            found[info, offset] = section, value
    return found


def frame_of(code, begin, end):
    """The lowest offset from R10 that is used, as a positive number."""
    lowest, copies, at = 0, set(), begin
    while at < end:
        op, regs, off, imm = struct.unpack_from("<BBhi", code, at)
        dst, src = regs & 15, regs >> 4
        if (op & 7 == LDX and src == R10) or (op & 7 in (ST, STX) and dst == R10):
            lowest = min(lowest, off)
        if op == MOV64_X and src == R10:
            copies.add(dst)
        elif op == ADD64_K and dst in copies:
            lowest = min(lowest, imm)
            copies.discard(dst)
        at += 16 if op == LD_IMM64 else 8
    return -lowest


def read_functions(path):
    with open(path, "rb") as file:
        sections = read_sections(file.read())
    symbols = read_symbols(sections)
    relocations = read_relocations(sections, symbols)
    functions = [Function(name, section, value, size)
                 for name, kind, section, value, size in symbols if kind == STT_FUNC]
    starts = {(f.section, f.start): f for f in functions}
    for f in functions:
        code, at = sections[f.section][1], f.start
        f.frame = frame_of(code, f.start, f.end)
        while at < f.end:
            op, regs, _, imm = struct.unpack_from("<BBhi", code, at)
            if op == CALL and regs >> 4 == PSEUDO_CALL:
                # Relative to the next instruction, or to the start of the symbol's section or function.
                section, value = relocations.get((f.section, at), (f.section, at))
                to = section, value + (imm + 1) * 8
                if to not in starts:
                    raise ValueError("%s: a call of no function" % f.name)
                f.calls.append(starts[to])
            at += 16 if op == LD_IMM64 else 8
    return functions


def rounded(frame):
    return -(-max(frame, 1) // FRAME_UNIT) * FRAME_UNIT


def chains(function):
    """Of the chains that begin here, the one with the largest stack and the one with most calls."""
    if not hasattr(function, "chains"):
        below = [chain for called in set(function.calls) for chain in chains(called)]
        all_of = [[function] + chain for chain in below] or [[function]]
        function.chains = [max(all_of, key=depth), max(all_of, key=len)]
    return function.chains


def depth(chain):
    return sum(rounded(f.frame) for f in chain)


def text_of(chain):
    return " -> ".join("%s %d" % (f.name, rounded(f.frame)) for f in chain)


def main():
    mode, paths = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 2 else ("", [])
    bad = False

    if mode not in ("check", "show"):
        sys.exit("usage: stack.py check|show OBJECT...")
    for path in paths:
        functions = read_functions(path)
        called = {id(c) for f in functions for c in f.calls}
        for program in functions:
            if id(program) in called:
                continue
            for chain in chains(program):
                over = depth(chain) > STACK_MAX or len(chain) > FRAMES_MAX
                if over or mode == "show":
                    print("%s: stack of %d in %d frames (at most %d in %d): %s" %
                          (path, depth(chain), len(chain), STACK_MAX, FRAMES_MAX, text_of(chain)))
                    bad |= over
                    break
    return 1 if bad and mode == "check" else 0


if __name__ == "__main__":
    sys.exit(main())
