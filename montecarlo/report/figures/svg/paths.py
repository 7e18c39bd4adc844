"""Path data of an SVG made short: relative coordinates, few digits, no needless sign.

In: paths of M, L, Q, C and z in absolute coordinates, as matplotlib writes them.  Out:
the same drawing, each point rounded where it stands, so that no error adds up.
"""

import re

#: How many coordinates each command takes.
ARITY = {"M": 2, "L": 2, "Q": 4, "C": 6, "Z": 0}
_TOKEN = re.compile(r"[A-Za-z]|[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def short_path(path: str, digits: int, factor: float = 1.0) -> str:
    """Return a path in relative coordinates.

    Parameters
    ----------
    path : str
        Absolute commands M, L, Q, C and z.
    digits : int
        Decimals that are kept, of coordinates times the factor.
    factor : float
        What coordinates are multiplied by.

    Raises
    ------
    ValueError
        If there is another command.
    """
    unit = 10**digits
    here = start = (0, 0)
    pieces: list[tuple[str, list[int]]] = []
    for command, values in _commands(path):
        whole = [round(value * factor * unit) for value in values]
        points = list(zip(whole[::2], whole[1::2], strict=True))
        moved = [n - here[i % 2] for i, n in enumerate(whole)]
        if command == "Z":
            here = start
            pieces.append(("z", []))
            continue
        if command == "M":
            pieces.append(("M" if not pieces else "m", moved))
            start = points[-1]
        elif command == "L" and moved[1] == 0:
            pieces.append(("h", moved[:1]))
        elif command == "L" and moved[0] == 0:
            pieces.append(("v", moved[1:]))
        else:
            pieces.append((command.lower(), moved))
        here = points[-1]
    return _written(pieces, digits)


def _commands(path: str) -> list[tuple[str, list[float]]]:
    """Split a path into commands, each with its coordinates."""
    tokens = _TOKEN.findall(path)
    found: list[tuple[str, list[float]]] = []
    place, letter = 0, ""
    while place < len(tokens):
        if tokens[place].isalpha():
            letter = "Z" if tokens[place] == "z" else tokens[place]
            place += 1
        if letter not in ARITY:
            known = ", ".join(ARITY)
            raise ValueError(f"path commands must be among {known}, got {letter!r}")
        values = [float(token) for token in tokens[place : place + ARITY[letter]]]
        found.append((letter, values))
        place += ARITY[letter]
        letter = letter if ARITY[letter] else ""  # no number may follow it
    return found


def _written(pieces: list[tuple[str, list[int]]], digits: int) -> str:
    """Write commands: a letter once for a run of them, signs in place of spaces."""
    text, last, has_point = "", "", False
    for letter, numbers in pieces:
        # what follows a move without a letter is a line
        if letter != last or letter in "Mmz":
            text += letter
        last = letter
        for number in numbers:
            written = short_number(number, digits)
            # a point begins a new number where the last one has had its own
            parted = written[0] == "-" or (written[0] == "." and has_point)
            text += written if text[-1].isalpha() or parted else f" {written}"
            has_point = "." in written
    return text


def short_number(number: int, digits: int) -> str:
    """Write a whole number of the smallest unit: ``5`` of tenths is ``.5``."""
    sign, size = ("-" if number < 0 else ""), abs(number)
    whole, part = divmod(size, 10**digits)
    if not part:
        return f"{sign}{whole}"
    return f"{sign}{whole or ''}.{part:0{digits}d}".rstrip("0")
