# shellcheck shell=sh
# For the scripts that run servet-probe in a guest; `probe` is the command. A script ends with "done_probing".
folder=$(mktemp -d)
limit=300 # seconds until a command counts as hanging; here everything takes ten times as long, and more on a busy host
failed=0

fail() {
    echo "FAIL: $*"
    failed=1
}

# rate PROFILE: what one worker copies in a second, in MB
rate() {
    sed -n 's/.*"reference_bytes_per_s": *\([0-9.e+]*\).*/\1/p' "$1" | head -n 1 | awk '{ printf "%d", $1 / 1e6 }'
}

# begin OPTION...: starts the probe; its events come to $folder/events
begin() {
    "$probe" -q "$@" --progress=json:3 -o "$folder/profile.json" 3>"$folder/events" 2>"$folder/err" &
    child=$!
}

# await TEXT: until the probe says so
await() {
    waited=0
    until grep -q "$1" "$folder/events"; do
        sleep 0.1
        waited=$((waited + 1))
        kill -0 $child 2>/dev/null && [ $waited -lt $((10 * limit)) ] || break
    done
    grep -q "$1" "$folder/events" || fail "no \"$1\" in the events: $(tail -n 3 "$folder/events") $(cat "$folder/err")"
}

# finish WHAT: waits for the probe; sets $status
finish() {
    waited=0
    while kill -0 $child 2>/dev/null && [ $waited -lt $((10 * limit)) ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    if kill -0 $child 2>/dev/null; then
        fail "$1: it hangs: $(tail -n 3 "$folder/events")"
        kill -9 $child
    fi
    wait $child
    status=$?
}

# A copy takes a tenth of a second: seconds of a fault in it would make it look many times as slow.
# similar WHAT BEFORE AFTER: rates
similar() {
    [ $((5 * $3)) -gt "$2" ] || fail "$1: $3 MB/s after $2 MB/s"
}

done_probing() {
    rm -rf "$folder"
    exit $failed
}
