# The coach: from a file of an opponent's games to a training, in four commands.
# Minutes are those of two cores, Stockfish 15.1 and a file of 126 games; more take longer, up to --minutes.

# 4 minutes: White and Black against a person, and what to expect: one page, studies and cards in output/karpov_anatoli.
precomp-games opponent karpov.pgn "Karpov Anatoli"

# As long as you like: it asks what costs most first, and remembers what you knew.
precomp-games drill --from=output/karpov_anatoli --side=white

# 3 minutes: the book that you have already against the same opponent. What to learn, to mend, to drop?
precomp-games judge --from=output/karpov_anatoli --side=white --book=mine.pgn

# 3 minutes, after new games: where they left the preparation, what that cost, and what they say of the opponent.
precomp-games review --from=output/karpov_anatoli --side=white --games=new.pgn --player="Me"
