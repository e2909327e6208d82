"""Rewrites the moves of a game as PGN has them, from what people and programs write in their place.

python-chess finds moves inside words: it reads "Sf3", a German knight's move, as a pawn's. Here a word is a
move as a whole, or the line is readable no further. Pieces may have the letters of another language (found
from the file as a whole, or from the game if the file leaves it open), figurines, or small letters. A result
ends a game, and so does another first move: the text behind it is a game of its own.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import io
import re
from collections.abc import Iterable, Iterator, Mapping

import chess.pgn

LANGUAGES: dict[str, dict[str, str]] = {
    name: dict(zip(letters.split(), "KQRBN", strict=True))
    for name, letters in {
        "English": "K Q R B N",
        "German": "K D T L S",  # Danish, Norwegian, and Swedish too
        "French": "R D T F C",
        "Spanish": "R D T A C",  # Italian too
        "Portuguese": "R D T B C",
        "Dutch": "K D T L P",
        "Polish": "K H W G S",
        "Czech": "K D V S J",
        "Hungarian": "K V B F H",
        "Finnish": "K D T L R",
        "Russian": "Кр Ф Л С К",
    }.items()
}
"""The PGN letter of each letter for king, queen, rook, bishop and knight, by language."""
LANGUAGES["English"]["P"] = ""  # a pawn's, which some programs write

BOOK_MOVE = "book"
"""The comment that match programs write at a move of a book."""
NO_MOVE = "Ka1a1"
"""Written for a word that is no move: python-chess takes it for a move that is never legal."""

_FIGURINES = dict(zip("♔♕♖♗♘♙♚♛♜♝♞♟", ("K", "Q", "R", "B", "N", "") * 2, strict=True))
_DASH = r"[-\u2010-\u2015\u2212]"
_HALF = r"(?:1[/⁄]2|½|0?[.,]50*)"
_ONE, _NONE = r"1(?:[.,]0+)?", r"0(?:[.,]0+)?"
_BETWEEN = rf"\s?(?:{_DASH}|:)\s?"
_RESULTS = {
    "1-0": f"{_ONE}{_BETWEEN}{_NONE}",
    "0-1": f"{_NONE}{_BETWEEN}{_ONE}",
    "1/2-1/2": f"{_HALF}(?:{_BETWEEN}{_HALF})?",
}
_FINISHED = "|".join(_RESULTS.values())
_END = r"(?=[\s(){};$]|\Z)"
_TOKEN = re.compile(
    rf"""(?P<blank>[\s\u200b\ufeff]+)
    |(?P<comment>\{{[^}}]*(?:\}}|\Z))
    |(?P<passed>;[^\n]*|^%[^\n]*|\[%[^\[\]\n]{{0,200}}\]|<[^<>\n]{{0,200}}>)
    |(?P<nag>\$\d+)
    |(?P<bracket>[()])
    |(?P<result>(?:{_FINISHED}|\*){_END})
    |(?P<number>\d+(?:\s*[.…][\s.…]*|{_END}))
    |(?P<word>[^\s(){{}};$]+?(?:\([^\W\d_]\))?(?=(?:1-0|0-1|1/2-1/2|\*)?(?:[\s(){{}};$]|\Z)))
    |(?P<other>.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
# The text of nearly all games, which python-chess reads as it stands: saves time in files of millions.
_PLAIN = re.compile(
    r"""(?:[ ]++|\n(?!\s*\n)|\{[^{}]*+\}|[()]|\$\d{1,3}|\d++\.(?:\.\.)?(?!\.)
    |(?:O-O(?:-O)?|[KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](?:=[QRBN])?)[+#]?[!?]{0,2}(?=[\s)])
    )*+(?:1-0|0-1|1/2-1/2|\*)?\s*""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"\{[^{}]*\}")
_SAN = re.compile(r"O-O(?:-O)?|[KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](?:=[QRBN])?")
_COMMENT_OR_MOVE = re.compile(r"\{([^{}]*)\}|" + _SAN.pattern)
_TOLD = frozenset((*_RESULTS, "*"))
_FIRST_NUMBER = re.compile(r"1\.(?<!\d1\.)(?!\.)")  # begins with what can be looked for quickly
_MOVE = re.compile(
    rf"""(?P<piece>Кр|[^\W\d_]|[♔-♟]\ufe0e?)??
    (?P<origin>[a-h]?[1-8]?)(?P<take>{_DASH}|[x×X:])?(?P<target>[a-h][1-8])
    (?:[=/(]?(?P<promoted>[^\W\d_]|[♕-♟])\)?)?
    :?(?:e\.?p\.?)?(?P<marks>[^\w\s]*)""",
    re.VERBOSE,
)
_CASTLING = re.compile(rf"[O0oОо]{_DASH}[O0oОо](?P<long>{_DASH}[O0oОо])?(?P<marks>[^\w\s]*)")
_NULL = frozenset(("--", "Z0", "0000", "@@@@"))
_MARKS = re.compile(r"[!?]{1,2}|[‼⁇⁈⁉]")
_DOUBLE = {"‼": "!!", "⁇": "??", "⁈": "?!", "⁉": "!?"}
# Words beside moves that are ignored: "N" is a novelty, "D" a diagram.
_BESIDE = re.compile(r"N|D|e\.?p\.?|ch|mate|dbl|dis|\d+:\d\d(?::\d\d)?|[^\w]+")


@functools.lru_cache(1 << 8)
def result_of(text: str) -> str | None:
    """Return a finished game's result as in PGN: "1-0", "0-1" or "1/2-1/2"; None for other texts."""
    fits = (result for result, written in _RESULTS.items() if re.fullmatch(written, text.strip()))
    return next(fits, None)


def languages_of(text: str) -> tuple[str, ...]:
    """Return the languages that fit most of a file's piece letters, the most usual first."""
    letters = collections.Counter(_letters(_tokens(text)))
    fits = {name: sum(map(letters.__getitem__, LANGUAGES[name])) for name in LANGUAGES}
    return tuple(name for name in LANGUAGES if fits[name] == max(fits.values()))


@dataclasses.dataclass(frozen=True)
class Standard:
    """A game in standard PGN.

    Attributes:
        text: its tags and its moves.
        language: language of its piece letters.
        small: piece by small letter, for letters that may be a pawn's file or a piece.
        plain: where the moves begin, if they are written as python-chess reads them; else 0.
    """

    text: str
    language: str = "English"
    small: Mapping[str, str] = dataclasses.field(default_factory=dict)
    plain: int = 0

    def moves(self) -> tuple[list[str], str] | None:
        """Return a plain text's moves, without signs of check, mate and judgment, and the result behind them.

        Return None if it is not plain, has variations, no moves, or a comment of `BOOK_MOVE`.
        """
        text = self.text[self.plain :] if self.plain else ""
        if not text or BOOK_MOVE in text.casefold():
            return None
        text = _COMMENT.sub(" ", text)
        moves = _SAN.findall(text) if "(" not in text else []
        end = text.rsplit(None, 1)[-1:]
        return (moves, end[0] if end and end[0] in _TOLD else "") if moves else None

    def comments(self) -> Iterator[tuple[int, str]]:
        """Yield the comments of a plain text without variations, each with the number of moves before it."""
        moves = 0
        for match in _COMMENT_OR_MOVE.finditer(self.text, self.plain):
            if match[1] is None:
                moves += 1
            else:
                yield moves, match[1]

    @property
    def pieces(self) -> str:
        """Piece letters of the game where they are not PGN's: a language, "small" or "unknown"; else ""."""
        return "small" if self.small else "" if self.language == "English" else self.language or "unknown"


def standard(text: str, languages: tuple[str, ...]) -> Iterator[Standard]:
    """Yield the games of a text that begins with tags, each in standard PGN.

    Text that follows a result and does not begin with a first move gives a game with an empty text.

    Args:
        text: tags, a line each, and moves.
        languages: of the file, see `languages_of`.
    """
    lines = list(io.StringIO(text, newline="\n"))
    of_tags = (k for k, line in enumerate(lines) if line.strip() and line[0] not in "[%;")
    begin = next(of_tags, len(lines))
    tags = "".join(line for line in lines[:begin] if line.startswith("["))
    moves = "".join(lines[begin:])
    if languages == ("English",) and len(_FIRST_NUMBER.findall(moves)) < 2 and _PLAIN.fullmatch(moves):
        yield Standard(f"{tags}\n{moves}", plain=len(tags) + 1)
        return
    for number, tokens in enumerate(_games(_tokens(moves))):
        if tokens[:1] == [_NOWHERE]:
            yield Standard("")
            continue
        language, small = _language(tags, tokens, languages)
        written = " ".join(_written(tokens, language, small))
        yield Standard(f"{tags if number == 0 else ''}\n{written}\n", language, small)


@dataclasses.dataclass(frozen=True)
class _Token:
    """A part of a game: its kind, its text, and a move's parts."""

    kind: str
    text: str
    move: re.Match[str] | None = None

    @property
    def is_first_number(self) -> bool:
        """Return whether White's first move comes next."""
        dots = self.text.count(".") + 3 * self.text.count("…")
        return self.kind == "number" and self.text.strip(" .…\n\t\r") == "1" and dots <= 1


_NOWHERE = _Token("word", "")  # stands before moves from an unknown position


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the parts of moves' text; of blanks, empty lines alone."""
    for match in _TOKEN.finditer(text):
        kind, part = match.lastgroup or "", match.group()
        if kind == "word":
            yield _Token(kind, part, _MOVE.fullmatch(part))
        elif kind not in ("blank", "passed", "other") or part.count("\n") > 1:
            yield _Token(kind, part)


def _games(tokens: Iterable[_Token]) -> Iterator[list[_Token]]:
    """Yield the parts of each game; the first game is always given, even if empty."""
    game: list[_Token] = []
    depth, moves, over, numbered, empty = 0, 0, False, False, False
    for token in tokens:
        if token.kind == "blank":
            empty = True
            continue
        # If moves have no numbers, an empty line ends a game, too.
        begins = token.is_first_number or (token.move and not numbered and (over or empty))
        empty = False
        if depth == 0 and moves and begins:
            yield game
            game, moves, over, numbered = [], 0, False, False
        elif over and (token.kind in ("number", "bracket") or token.move is not None):
            yield game
            # Behind a result, a first move begins another game; the position of any other text is unknown.
            game, moves, over = [] if begins else [_NOWHERE], 0, False
        elif over and token.kind != "comment":
            continue
        if token.kind == "bracket":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        elif token.kind == "word":
            moves += depth == 0
        elif token.kind == "number":
            numbered = True
        elif token.kind == "result":
            if depth:
                continue
            over = True
        game.append(token)
    yield game


def _letters(tokens: Iterable[_Token]) -> Iterator[str]:
    """Yield the capital letters of pieces."""
    for token in tokens:
        if token.move is not None:
            for part in ("piece", "promoted"):
                letter = token.move[part]
                if letter and letter[0].isupper():
                    yield letter


def _language(tags: str, tokens: list[_Token], languages: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Return the language of a game's pieces, and the pieces that its small letters may be."""
    letters = set(_letters(tokens))
    small = {token.move["piece"] for token in tokens if token.move is not None} - {None}
    small = {letter.upper() for letter in small if letter.islower()}
    may_be_small = not letters and bool(small)
    wanted = letters or small
    if not wanted:
        return "English", {}
    fits = [name for name in languages if wanted <= LANGUAGES[name].keys()]
    fits = fits or [name for name in LANGUAGES if wanted <= LANGUAGES[name].keys()]
    readings: dict[tuple[str, ...], str] = {}
    for name in fits:
        readings.setdefault(tuple(LANGUAGES[name][letter] for letter in sorted(wanted)), name)
    if len(readings) > 1:
        read = {name: _plies(tags, tokens, name) for name in readings.values()}
        most = [name for name, plies in read.items() if plies == max(read.values())]
        sure = len(most) == 1 or ("English" in most and "P" not in wanted)
        chosen = most[0] if sure else ""
    else:
        chosen = next(iter(readings.values()), languages[0])
    if not may_be_small or not chosen:
        return chosen, {}
    return chosen, {k.lower(): v for k, v in LANGUAGES[chosen].items() if k.lower() in "abcdefgh"}


def _plies(tags: str, tokens: list[_Token], language: str) -> int:
    """Return the number of half-moves of a game that can be read in a language."""
    text = f"{tags}\n{' '.join(_written(tokens, language, {}))}\n"
    board = chess.pgn.read_game(io.StringIO(text), Visitor=_Readable)
    return 0 if board is None else len(board.move_stack)


class _Readable(chess.pgn.BoardBuilder):
    """Plays a main line up to a move that cannot be read."""

    def handle_error(self, error: Exception) -> None:
        """Pass over the rest."""


def _written(tokens: Iterable[_Token], language: str, small: Mapping[str, str]) -> Iterator[str]:
    """Yield the parts of a game as PGN writes them."""
    letters = LANGUAGES.get(language, {})
    for token in tokens:
        if token.kind == "result":
            yield result_of(token.text) or "*"
        elif token.kind == "number":
            continue
        elif token.kind != "word":
            yield token.text
        elif token.move is not None:
            yield _move(token.move, letters)
            yield from _nags(token.move["marks"])
        elif castling := _CASTLING.fullmatch(token.text):
            yield "O-O-O" if castling["long"] else "O-O"
            yield from _nags(castling["marks"])
        elif token.text in _NULL:
            yield "--"
        elif _BESIDE.fullmatch(token.text):
            yield from _nags(token.text)
        else:
            yield NO_MOVE


def _move(move: re.Match[str], letters: Mapping[str, str]) -> str:
    """Return a move in SAN, or `NO_MOVE` if it is no move in these letters."""

    def letter(text: str) -> str | None:
        return _FIGURINES.get(text[0], letters.get(text, letters.get(text.upper())))

    piece, promoted = move["piece"] or "", move["promoted"] or ""
    if move["take"] and not piece and not move["origin"]:
        return NO_MOVE
    moved = letter(piece) if piece else ""
    if promoted and (moved or move["target"][1] not in "18"):
        chosen = "" if promoted == "N" else None  # a novelty
    else:
        chosen = letter(promoted) if promoted else ""
    if moved is None or chosen is None:
        return NO_MOVE
    taken = "x" if move["take"] in ("x", "×", "X", ":") else ""
    return f"{moved}{move['origin']}{taken}{move['target']}{'=' if chosen else ''}{chosen}"


def _nags(marks: str) -> Iterator[str]:
    for mark in _MARKS.findall(marks):
        yield _DOUBLE.get(mark, mark)
