# For the tests of the command servet-probe, which read this: $probe, $machines, $folder and fail.
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
