%% Processes of the runtime, on two schedulers.
-module(pool).
-export([main/0]).

work(0, State) -> State;
work(N, State) -> work(N - 1, (State * 1664525 + 1013904223) band 16#ffffffff).

main() ->
    Main = self(),
    [spawn(fun() -> Main ! work(400000, Seed) end) || Seed <- lists:seq(1, 60)],
    io:format("~p~n", [lists:sum([receive Value -> Value end || _ <- lists:seq(1, 60)])]),
    halt().
