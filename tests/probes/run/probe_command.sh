# For the tests of the command servet-probe, which read this: $probe, $machines, $folder, fail and refused.
probe=$1
machines=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CONFIG_HOME="$folder/config"
unset SERVET_PROFILE
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# refused STATUS TEXT ARGUMENTS…: exactly one line on stderr, with TEXT in it, nothing on stdout
refused() {
    status=$1
    text=$2
    shift 2
    "$probe" "$@" >"$folder/out" 2>"$folder/err"
    [ $? -eq "$status" ] || fail "$*: expected status $status"
    [ "$(wc -l <"$folder/err")" -eq 1 ] || fail "$*: expected one line, got: $(cat "$folder/err")"
    grep -q -- "$text" "$folder/err" || fail "$*: '$text' is not in: $(cat "$folder/err")"
    [ -s "$folder/out" ] && fail "$*: wrote on standard output"
}
