# A cluster on one machine, for MPI launchers: sourced by the tests of this folder (bash).
#
#   bed_up NODES [DELAY_US] [A:B:US …]   nodes node1 … nodeN; one-way delay of every link, and of single links
#   bed_run COMMAND …                    runs it as if logged in on node1
#   bed_on NODE COMMAND …                runs it on that node
#   bed_cpuset NODE CPUS                 from now on its processes may use these; fails where that cannot be had
#   bed_power_cut NODE                   its link goes down and everything on it is killed, without a word to anyone
#   bed_down                             and everything is gone
#
# A node is a process in network, host name, IPC and mount namespaces of its own; nodes are wired through delay_switch.
# Launchers reach them through $BED/rsh instead of ssh. Every process started here asks the kernel to be killed with
# its parent, so that a crash of the test leaves nothing behind: MPI daemons end when their mpirun does.

BED_NETWORK=10.78.0

bed_skip() { echo "SKIP: $*"; exit 77; }

# A test ends with "exit $failed".
failed=0
expect() { # what, command …
	local what=$1
	shift
	if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failed=1; fi
}

bed_need() { # programs …
	local program
	for program in "$@"; do command -v "$program" >/dev/null || bed_skip "no $program"; done
	[ "$(id -u)" = 0 ] || bed_skip "network namespaces need root"
	command -v ip >/dev/null || bed_skip "no ip command (package iproute2)"
	command -v unshare nsenter setpriv chrt flock >/dev/null || bed_skip "no unshare, nsenter, setpriv or flock (package util-linux)"
	[ -c /dev/net/tun ] || bed_skip "no /dev/net/tun for the links between the nodes"
	unshare --net --uts --ipc --mount --propagation private true 2>/dev/null ||
		bed_skip "this kernel or container allows no namespaces"
}

bed_wait_for() { # file
	local i
	for ((i = 0; i < 500; i++)); do [ -s "$1" ] && return 0; sleep 0.01; done
	echo "bed: $1 did not appear in 5 s" >&2
	return 1
}

# A connection that was idle starts slowly again, and a message of 32 KiB then takes two or three round trips more:
# switched off in the nodes, as on clusters that are tuned for MPI.
bed_hold() { # name
	setpriv --pdeathsig KILL unshare --net --uts --ipc --mount --propagation private \
		sh -c "hostname $1; mount -t tmpfs -o mode=1777 shm /dev/shm; mount --bind $BED/hosts /etc/hosts
			mount -t proc proc /proc; echo 0 >/proc/sys/net/ipv4/tcp_slow_start_after_idle
			ip link set lo up; echo ok >$BED/$1.ready; exec sleep infinity" </dev/null >"$BED/$1.log" 2>&1 &
	echo $! >"$BED/$1.pid"
	disown # no "Killed" on stderr when it is
	bed_wait_for "$BED/$1.ready" || { cat "$BED/$1.log" >&2; return 1; }
}

bed_pid() { cat "$BED/$1.pid"; }

bed_delays() { # nodes delay overrides…
	local n=$1 delay=$2 i j d o
	shift 2
	for ((i = 1; i <= n; i++)); do
		for ((j = 1; j <= n; j++)); do
			d=$delay
			for o in "$@"; do
				case $o in "$i:$j:"* | "$j:$i:"*) d=${o##*:} ;; esac
			done
			echo "$d"
		done
	done
}

bed_up() {
	local n=$1 delay=${2:-0} k p
	shift; [ $# -eq 0 ] || shift
	BED=$(mktemp -d "${TMPDIR:-/tmp}/servet-bed.XXXXXX")
	export BED
	trap bed_down EXIT
	trap 'exit 1' INT TERM HUP
	echo "127.0.0.1 localhost" >"$BED/hosts"
	for ((k = 1; k <= n; k++)); do echo "$BED_NETWORK.$k node$k" >>"$BED/hosts"; done
	bed_hold switch || return 1
	# shellcheck disable=SC2046
	setpriv --pdeathsig KILL nsenter -t "$(bed_pid switch)" -n chrt --fifo 10 "$DELAY_SWITCH" port "$n" "$BED/wired" \
		$(bed_delays "$n" "$delay" "$@") </dev/null >"$BED/wired.log" 2>&1 &
	disown
	bed_wait_for "$BED/wired" || { cat "$BED/wired.log" >&2; return 1; }
	for ((k = 1; k <= n; k++)); do
		bed_hold "node$k" || return 1
		p=$(bed_pid "node$k")
		nsenter -t "$(bed_pid switch)" -n ip link set "port$k" netns "$p" name eth0 &&
			nsenter -t "$p" -n ip link set eth0 up &&
			nsenter -t "$p" -n ip address add "$BED_NETWORK.$k/24" dev eth0 || return 1
		echo "node$k slots=${BED_SLOTS:-1}" >>"$BED/hostfile"
		echo "node$k:${BED_SLOTS:-1}" >>"$BED/hostfile.hydra"
	done
	cat >"$BED/rsh" <<-END
		#!/bin/sh
		# stands for ssh: [options] NODE COMMAND …
		while :; do case \$1 in -[lpioF]) shift 2 ;; -*) shift ;; *) break ;; esac; done
		node=\$1; shift
		[ ! -e $BED/\$node.cpuset ] || echo \$\$ >"\$(cat $BED/\$node.cpuset)/cgroup.procs"
		exec setpriv --pdeathsig KILL nsenter -t "\$(cat $BED/\$node.pid)" -n -u -i -m --wd="\$PWD" sh -c "\$*"
	END
	# The nodes of the bed share the PUs of one machine, where threads of several nodes that spin for each other's turn on
	# the same PU starve everybody for seconds: only one node measures itself at a time.
	cat >"$BED/turn" <<-END
		#!/bin/sh
		exec setpriv --pdeathsig KILL flock --no-fork $BED/measuring $SERVET_PROBE "\$@"
	END
	chmod +x "$BED/rsh" "$BED/turn"
}

bed_on() {
	local p
	p=$(bed_pid "$1")
	shift
	setpriv --pdeathsig KILL nsenter -t "$p" -n -u -i -m --wd="$PWD" "$@"
}

# Messages up to 256 KiB go without a handshake: each of its five ways would ask a busy machine for its CPUs again.
bed_environment() {
	export SERVET_PROBE_COMMAND="$BED/turn" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$BED/rsh" OMPI_MCA_plm_rsh_no_tree_spawn=1 \
		OMPI_MCA_orte_default_hostfile="$BED/hostfile" OMPI_MCA_rmaps_base_oversubscribe=1 \
		OMPI_MCA_hwloc_base_binding_policy=none \
		OMPI_MCA_oob_tcp_if_include=$BED_NETWORK.0/24 OMPI_MCA_btl_tcp_if_include=$BED_NETWORK.0/24 \
		OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,vader,self OMPI_MCA_btl_vader_single_copy_mechanism=none \
		HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC="$BED/rsh" HYDRA_HOST_FILE="$BED/hostfile.hydra" HYDRA_IFACE=eth0 \
		UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 UCX_RNDV_THRESH=256k
}

bed_run() { (bed_environment; bed_on node1 "$@"); }

# Three ranks by a rankfile: what the shell says in each. PUS is what the rank may use.
bed_ranks() { # rankfile, text
	(
		bed_environment
		unset OMPI_MCA_hwloc_base_binding_policy
		bed_on node1 timeout 60 mpirun.openmpi -np 3 --mca rmaps_rank_file_physical 1 --rankfile "$1" sh -c \
			"PUS=\$(sed -n 's/Cpus_allowed_list:[[:space:]]*//p' /proc/self/status); $2"
	) 2>"$BED/err"
}

# By a control group, of either version, which a rank cannot leave as it can the mask of taskset.
bed_cpuset() { # node cpus
	local top=/sys/fs/cgroup/cpuset group
	if [ ! -d $top ]; then
		top=/sys/fs/cgroup
		grep -qw cpuset $top/cgroup.subtree_control 2>/dev/null || return 1
	fi
	group=$top/$(basename "$BED").$1
	mkdir "$group" 2>/dev/null || return 1
	echo "$group" >"$BED/$1.cpuset"
	if [ -e $top/cpuset.mems ] && [ ! -e $top/cgroup.controllers ]; then
		cat $top/cpuset.mems >"$group/cpuset.mems" || return 1
	fi
	echo "$2" >"$group/cpuset.cpus" 2>/dev/null
}

# Process ids of a node, its holder's left out.
bed_processes() {
	local p holder
	holder=$(bed_pid "$1")
	for p in /proc/[0-9]*; do
		[ "$p" != "/proc/$holder" ] && [ "$p/ns/net" -ef "/proc/$holder/ns/net" ] && echo "${p#/proc/}"
	done
}

bed_power_cut() {
	nsenter -t "$(bed_pid "$1")" -n ip link set eth0 down
	# shellcheck disable=SC2046
	kill -9 $(bed_processes "$1") 2>/dev/null
	bed_processes "$1" | xargs -r kill -9 2>/dev/null
}

# What a command left behind on any node.
bed_leftovers() {
	local f p
	for f in "$BED"/node*.pid; do
		f=${f##*/}
		for p in $(bed_processes "${f%.pid}"); do
			ps -o pid=,stat=,args= -p "$p"
		done
	done
}

bed_down() {
	local f i
	[ -n "${BED:-}" ] || return 0
	for f in "$BED"/*.pid "$BED"/wired; do
		case $f in */node*) bed_processes "$(basename "$f" .pid)" | xargs -r kill -9 2>/dev/null ;; esac
		[ -s "$f" ] && kill -9 "$(cat "$f")" 2>/dev/null
	done
	for f in "$BED"/*.cpuset; do
		[ -s "$f" ] || continue
		for ((i = 0; i < 200; i++)); do rmdir "$(cat "$f")" 2>/dev/null && break; sleep 0.01; done
	done
	rm -rf "$BED"
	BED=
}
