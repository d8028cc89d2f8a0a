#!/bin/sh
# How many cache levels are found on simulated machines, by the default method and by the paper's?
#
#   accuracy.sh ACCURACY                            the confusion tables of all four sets: training and held-out machines,
#                                                   without and with noise, and the time taken
#   accuracy.sh ACCURACY PART NOISE EVERY [OPTION …] one set: PART train or final, NOISE quiet or noise, every EVERY-th
#                                                   machine of it; options of the program, such as --list or --least 97
#   accuracy.sh ACCURACY drawn|fourth N [SEED]      N machines of any size and shape (fourth: of four levels), and the same
#                                                   with two kinds of noise; without SEED one that is new every time, and
#                                                   printed
#
# Nothing may be tuned on the part "final".
set -e
accuracy=$1
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

measure() {
    part=$1 noise=$2 every=$3
    shift 3
    flag=
    [ "$noise" = quiet ] || flag=--noise
    python3 "$here/machines.py" --part "$part" --every "$every" $flag "$folder/$part-$noise"
    echo "-- $part, $noise"
    "$accuracy" --jobs "$(nproc)" "$@" "$folder/$part-$noise"/*.json
}

drawn() {
    part=$1 count=$2
    seed=${3:-$(date +%s)}
    echo "seed $seed"
    for noise in "" --noise --busy; do
        machines=$folder/$part$noise
        # shellcheck disable=SC2086 # no noise is no argument
        python3 "$here/machines.py" --part "$part" --count "$count" --seed "$seed" $noise "$machines"
        echo "-- $part${noise:+, $noise}"
        "$accuracy" --jobs "$(nproc)" --method default --list "$machines"/*.json
    done
}

if [ "${2-}" = drawn ] || [ "${2-}" = fourth ]; then
    drawn "$2" "$3" ${4+"$4"}
elif [ $# -gt 1 ]; then
    shift
    measure "$@"
else
    begin=$(date +%s)
    measure train quiet 1
    measure train noise 1
    measure final quiet 1
    measure final noise 1
    echo "$(($(date +%s) - begin)) s in all"
fi
