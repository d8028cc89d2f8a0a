# shellcheck shell=bash
# For the scripts below `bed`: a folder for their files, and whether $files/found is $files/expected, which is not to be
# empty; $files/err is shown where it is not.
files=$(mktemp -d)
trap 'rm -rf "$files"' EXIT
failed=0 # read where the script ends

report() { # what
	if [ -s "$files/expected" ] && cmp -s "$files/expected" "$files/found"; then
		echo "ok: $1"
		return
	fi
	echo "FAILED: $1, expected:"
	cat "$files/expected"
	echo "found:"
	cat "$files/found" "$files/err"
	failed=1
}
