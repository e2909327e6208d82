"""The stories of docs/stories: scripts of four commands at most, run from top to bottom, as they stand there.

Where a command takes minutes, smaller settings are added. Files that a story begins with are samples.
"""

import pathlib
import re
import shlex
import shutil

import pytest

from precomp_games.chess import find_engine
from precomp_games.commands import main
from tests.examples.launcher import printed
from tests.test_docs import example_of

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_STORIES = sorted((_ROOT / "docs" / "stories").glob("*.sh"))
_DATA = _ROOT / "precomp_games" / "commands" / "data"
_SEARCHES = "--opponent_nodes=100 --analyst_nodes=200"
_SMALL = {
    "opponent_preparation": f"--plies=6 --behind=uniform --penalty=0.01 --max_plies=40 {_SEARCHES}",
    "judge_book": "--penalty=0.05 --learn=1",
    "review_games": "--penalty=0.05 --learn=1",
    "estimate_opponent": "--games=2 --plies=6 --nodes=10,20 --top_k_values=2",
    "chess_preparation": f"--penalty=0.05 --max_plies=8 --menu=2 --play_budget=9 --match_games=2 {_SEARCHES}",
    "book_match": "--games=2 --nocontrols --exits=0",
    "sparring": "--clock=0.5+0.005 --analyst_nodes=200 --menu=2 --max_evaluations=20 --play=2 --last=1",
}


def commands(story):
    """Return the commands of a story, as words."""
    text = story.read_text(encoding="utf-8")
    return [shlex.split(line) for line in text.splitlines() if line and not line.startswith("#")]


def test_there_is_one_for_each_reader():
    assert [story.stem for story in _STORIES] == ["coach", "engine_author", "researcher"]


@pytest.mark.parametrize("story", _STORIES, ids=lambda story: story.stem)
def test_a_story_has_four_commands_and_tells_how_long_they_take(story):
    assert 1 <= len(commands(story)) <= 4
    told = re.findall(
        r"^# (?:\d+ (?:second|minute|hour)s?|As long as you like)[,:].*\n\S", story.read_text(), re.M
    )
    assert len(told) == len(commands(story))


@pytest.mark.engine
# Costs seconds: examples, one after the other.
@pytest.mark.parametrize("story", _STORIES, ids=lambda story: story.stem)
def test_a_story_runs_from_top_to_bottom(story, tmp_path, monkeypatch):
    shutil.copy(_DATA / "karpov_sample.pgn", tmp_path / "karpov.pgn")
    shutil.copy(_DATA / "repertoire_sample.pgn", tmp_path / "mine.pgn")
    games = (_DATA / "review_sample.pgn").read_text(encoding="utf-8")
    (tmp_path / "new.pgn").write_text(games.replace('"You"', '"Me"'), encoding="utf-8")
    engine = tmp_path / "my_engine"
    engine.write_text(f'#!/bin/sh\nexec "{find_engine()}"\n', encoding="utf-8")
    engine.chmod(0o755)
    (tmp_path / "typed").write_text("q\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for words in commands(story):
        if words[:2] == ["precomp-games", "scout"]:  # which no example starts
            assert main(words) == 0
            continue
        example = example_of(words)
        assert example is not None, words
        name = pathlib.Path(example[0]).stem
        small = shlex.split(_SMALL.get(name, ""))
        printed(name, *example[1], *small, cwd=tmp_path, typed=tmp_path / "typed")
