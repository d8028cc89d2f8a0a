#!/bin/bash
# Can a site roll Servet out and take it away again, by what docs/ADMINISTRATORS.md says? Install, measure in a job on one
# node, distribute, switch on by the module file, see it in the report of a job on another node, upgrade over a profile of
# an older version, switch off, remove, and nothing is left.
#
# Runs below `bed`, in namespaces of its own: what is installed goes to a file system in memory over $PREFIX. $BUILD is the
# build folder, $SOURCE the source, $WORKER a program whose threads say where they sit.
set -u
skip() { echo "skipped: $*"; exit 77; }
# A site has one Lmod; Debian keeps it in a folder of its version.
lmod=$(find /usr/share/lmod /usr/local/lmod /opt/lmod -path '*/init/sh' 2>/dev/null | head -n 1)
[ -n "$lmod" ] || skip "no Lmod (package lmod)"
case $PREFIX in / | /usr) skip "installing over $PREFIX would hide the system" ;; esac
[ "$(nproc)" -ge 2 ] || skip "one PU: there is nothing to choose"

# shellcheck source=tests/slurm/report.sh
. "$(dirname "$0")/report.sh"
: >"$files/err"
expect() { # what, "expected" text, found text
	printf '%s\n' "$2" >"$files/expected"
	printf '%s\n' "$3" >"$files/found"
	report "$1"
}
export HOME="$files/home"
mkdir -p "$HOME" "$files/shared" "$PREFIX"
mount -t tmpfs rollout "$PREFIX" || skip "no file system in memory over $PREFIX"
mount -t tmpfs -o mode=1777 shm /dev/shm

install_it() { meson install -C "$BUILD" --no-rebuild --quiet >"$files/log" 2>&1 || { cat "$files/log"; exit 1; }; }
install_it

# One idle node of each kind measures, in a job of its own. In this profile the last PU is the better one, which no
# topology of this machine says: a program that leaves it to its main thread has read the profile.
last=$(($(nproc) - 1))
profile=$files/shared/kind.json
srun -w node1 --exclusive "$PREFIX/bin/servet-probe" -q --probes cache --largest 64K --budget 0.001 -o "$files/measured.json" ||
	{ echo "FAILED: measuring in a job"; exit 1; }
kinds="\"kinds\": [{\"efficiency\": 0, \"pus\": \"0-$((last - 1))\"}, {\"efficiency\": 1, \"pus\": \"$last\"}],"
sed "s/^ *\"packages\":/$kinds&/" "$files/measured.json" >"$profile"

# The site's own module: Servet's, and where the profile of this kind of node is.
mkdir -p "$files/modules/site"
printf '%s\n' 'depends_on("servet")' "setenv(\"SERVET_PROFILE\", \"$profile\")" >"$files/modules/site/1.lua"
cat >"$files/job" <<END
#!/bin/sh
. "$lmod"
module use "$PREFIX/share/servet/modulefiles" "$files/modules"
\$MODULE
SERVET_WATCH=0 SERVET_VERBOSE=1 SERVET_REPORT="$files/job.report" "$WORKER" 1
echo "on \$SLURMD_NODENAME"
echo "LD_PRELOAD=\$LD_PRELOAD SERVET_MEM_PRIOR=\$SERVET_MEM_PRIOR"
END
job() { # commands before the program: its environment
	rm -f "$files/job.report"
	MODULE=$1 sbatch --wait --quiet -w node2 --exclusive --export=ALL -o "$files/job.out" "$files/job" >"$files/err" 2>&1
	cat "$files/job.out" >>"$files/err"
	tail -n 1 "$files/job.out"
}

library=$(find "$PREFIX" -name libservet_pin.so)
expect "a job with the module preloads the library" "LD_PRELOAD=$library SERVET_MEM_PRIOR=1" "$(job 'module load site')"
thread=$("$PREFIX/bin/servet-map" --profile "$profile" -n 2 --mem-prior --format list | tr , '\n' | grep -vx "$last")
placed() { # what: the thread got the other of the two PUs by this profile, and the report says so
	expect "$1: it ran on the other node" 1 "$(grep -c '^on node2$' "$files/job.out")"
	expect "$1: the profile is used" 1 "$(grep -c "plan made ($profile)" "$files/job.out")"
	expect "$1: the thread is placed" 1 "$(grep -c "thread [0-9]* of the program on PU $thread$" "$files/job.out")"
	expect "$1: the report says where" 1 "$(grep -c " thread PU $thread last $thread .* by servet$" "$files/job.report")"
}
placed "a job with the module"

# Installed over what is there. A profile of an older version has fewer keys, and one of a newer version more: both are used.
install_it
python3 - "$profile" <<'END'
import json, sys
profile = json.load(open(sys.argv[1]))
profile["measurement"]["tool"] = "servet 0.1.0"
profile["measurement"].pop("conditions", None)
for node_class in profile["node_classes"]:
    for key in ("cache_curve", "tlb", "numa_access"):
        node_class.pop(key, None)
profile["of_a_newer_version"] = {"x": 1}
json.dump(profile, open(sys.argv[1], "w"))
END
expect "a job after the upgrade" "LD_PRELOAD=$library SERVET_MEM_PRIOR=1" "$(job 'module load site')"
placed "an older profile"
"$PREFIX/bin/servet-show" --diff "$profile" "$files/measured.json" >"$files/diff" 2>&1 ||
	[ $? -eq 1 ] || { echo "FAILED: the two cannot be compared:"; cat "$files/diff"; failed=1; }

# Switched off: for a job by unloading the module; for good, before the packages, in Slurm's file too.
expect "a job that unloads the module" "LD_PRELOAD= SERVET_MEM_PRIOR=" "$(job 'eval module load site; module unload site')"
[ ! -e "$files/job.report" ] || { echo "FAILED: a program without the module wrote a report"; failed=1; }
mkdir -p "$files/root/etc/slurm"
echo "optional $PREFIX/lib/slurm/spank_servet.so default=off" >"$files/root/etc/slurm/plugstack.conf"
DPKG_ROOT=$files/root sh "$SOURCE/debian/servet.prerm" remove 2>/dev/null && { echo "FAILED: removed while Slurm names it"; failed=1; }
: >"$files/root/etc/slurm/plugstack.conf"
DPKG_ROOT=$files/root sh "$SOURCE/debian/servet.prerm" remove || failed=1

ninja -C "$BUILD" uninstall >"$files/log" 2>&1 || { cat "$files/log"; failed=1; }
find "$PREFIX" ! -type d | sed 's/^/left: /' >"$files/left"
find "$HOME" /dev/shm -name '*servet*' | sed 's/^/left: /' >>"$files/left"
[ ! -s "$files/left" ] || { echo "FAILED: not everything is gone:"; cat "$files/left"; failed=1; }
expect "a job after the removal" "LD_PRELOAD= SERVET_MEM_PRIOR=" "$(job true)"
exit $failed
