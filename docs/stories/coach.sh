# The coach's evening: from a file of an opponent's games to a training, in four commands.
# Minutes are those of two cores, Stockfish 15.1 and a file of 126 games; more take longer, up to --minutes.
# With networks of people's moves (--maia, or PRECOMP_MAIA) people stand behind the games in place of engines.

# 3 seconds: what does the opponent play, with what score, what is new, where is it left? A page, lines as PGN.
precomp-games scout karpov.pgn "Karpov Anatoli" --output_dir=output/karpov_anatoli

# 3 minutes: your own repertoire against this opponent, and the 15 positions that add most to it.
# A file of each color (--keep=white.pgn --keep=black.pgn) prepares both; without --keep it finds books of its own.
precomp-games opponent karpov.pgn "Karpov Anatoli" --keep=mine.pgn --budget=15

# As long as you like: it asks what costs most first, and remembers what you knew.
precomp-games drill --from=output/karpov_anatoli --side=white

# 3 minutes, after new games: where they left the book, what that cost, what to learn, and what the opponent replied.
precomp-games review --from=output/karpov_anatoli --side=white --games=new.pgn --player="Me"
