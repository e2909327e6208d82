# The engine author: what beats your engine, and which start positions are fair, in four commands.
# What an engine cannot do of what is asked for (options, limits, lines) is listed before any work, with flags that help.

# 1 minute: how random is it, and which searches is it like?
precomp-games estimate --opponent_engine=./my_engine

# 3 minutes: a book against it, with a page, and a match that says whether the book keeps its promise.
precomp-games prepare --opponent_engine=./my_engine --output_dir=output/my_engine --report

# 5 minutes: Elo with the book and without, a sequential test, and start positions in which White scores one half.
precomp-games match --from=output/my_engine --opponent_engine=./my_engine --games=200 --sprt=0,5 --openings=0.5

# 1 hour: under a clock, by playing it and learning from the games. Ended, it goes on from where it was.
precomp-games spar --opponent_engine=./my_engine --clock=1+0.01
