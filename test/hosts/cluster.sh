#!/bin/bash
# Makes several hosts out of one machine. A host has namespaces of its own (network, mounts, UTS,
# IPC, processes), an address behind a bridge, its own /tmp, /dev/shm, /run and home, and an sshd.
# Needs root, iproute2, util-linux and openssh-server.
#
#     cluster.sh needs                     says what is missing here; nothing: hosts can be made
#     cluster.sh up N                      hosts n1 .. nN at 10.77.0.1 ..
#     cluster.sh down                      ends them, and removes all but shared/
#     cluster.sh on nK COMMAND...          runs a shell's command on a host
#     cluster.sh rate nK 200mbit|none      shapes what a host sends and receives (tc tbf)
#     cluster.sh link nK down|up           pulls the cable
#     cluster.sh part nA,nB ...            cuts these hosts off from the others; `heal` undoes it
#     cluster.sh kill nK                   the host loses power: processes, memory and files
#     cluster.sh boot nK                   it comes back, empty
#     cluster.sh bytes                     bytes that each host has sent and received
#     cluster.sh processes nK WORD         processes of a host whose command lines have a word
#
# HOSTS_BASE is a folder of this cluster alone, below /tmp; several clusters can stand side by side.
# All hosts see BASE/shared, and read-only the folders below /tmp that HOSTS_SEEN lists. shared is a
# FUSE file system where bindfs is installed, else a bind mount. HOSTS_OWNER is a process: when it
# ends, however it does, the cluster is taken down.
set -eu
SELF=$(readlink -f "$0")
BASE=${HOSTS_BASE-/tmp/hetu-hosts}
RUN=$BASE/run SHARED=$BASE/shared
SEEN=${HOSTS_SEEN-}
NET=10.77.0
MOST=16
SIZE=512m # of a host's /tmp and /dev/shm
CLEAN=(env -i HOME=/root USER=root LOGNAME=root TERM=dumb SHELL=/bin/bash
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)

die() { echo "cluster.sh: $*" >&2; exit 1; }
pid_of() { cat "$RUN/$1.pid" 2>/dev/null || die "there is no host $1"; }
names() { for f in "$RUN"/n*.pid; do [ ! -e "$f" ] || basename "$f" .pid; done; }
in_switch() { nsenter -t "$(cat "$RUN/switch.pid")" -n "$@"; }
in_net() { local host=$1; shift; nsenter -t "$(pid_of "$host")" -n "$@"; }

child_of() {
    local -a child
    for _ in $(seq 100); do
        read -r -a child < "/proc/$1/task/$1/children" || true
        [ -z "${child[0]-}" ] || { echo "${child[0]}"; return; }
        sleep 0.02
    done
    die "no child of $1"
}

# host_main NAME: the first process of a host, inside its namespaces.
host_main() {
    local name=$1 hold=$RUN/$1.hold seen i=0
    hostname "$name"
    mount -t proc proc /proc
    mkdir -p "$hold"
    mount -t tmpfs tmpfs "$hold"
    mkdir "$hold/shared" "$hold/run" "$hold/tmp"
    mount --bind "$SHARED" "$hold/shared"
    mount --bind "$RUN" "$hold/run"
    for seen in $SEEN; do
        mkdir "$hold/seen$i"
        mount --bind "$seen" "$hold/seen$i"
        mount -o remount,ro,bind "$hold/seen$i"
        i=$((i + 1))
    done
    mount -t tmpfs -o "size=$SIZE,mode=1777" tmpfs "$hold/tmp"
    mkdir -p "$hold/tmp/${SHARED#/tmp/}" "$hold/tmp/${RUN#/tmp/}"
    mount --move "$hold/shared" "$hold/tmp/${SHARED#/tmp/}"
    mount --bind "$hold/run/keys" "$hold/tmp/${RUN#/tmp/}"
    i=0
    for seen in $SEEN; do
        mkdir -p "$hold/tmp/${seen#/tmp/}"
        mount --move "$hold/seen$i" "$hold/tmp/${seen#/tmp/}"
        i=$((i + 1))
    done
    ! command -v bindfs >/dev/null ||
        bindfs "$hold/tmp/${SHARED#/tmp/}" "$hold/tmp/${SHARED#/tmp/}"
    mount --rbind "$hold/tmp" /tmp
    mount -t tmpfs -o "size=$SIZE,mode=1777" tmpfs /dev/shm
    mount -t tmpfs tmpfs /run
    mount -t tmpfs -o mode=1777 tmpfs /var/tmp
    mount -t tmpfs -o mode=700 tmpfs /root
    mkdir -p /run/sshd /root/.ssh
    cp "$RUN/id" "$RUN/id.pub" "$RUN/config" /root/.ssh/
    chmod 600 /root/.ssh/*
    echo "127.0.0.1 localhost" >/run/hosts
    for k in $(seq "$MOST"); do echo "$NET.$k n$k"; done >>/run/hosts
    mount --bind /run/hosts /etc/hosts
    ip link set lo up
    until ip -4 addr show dev eth0 2>/dev/null | grep -q inet; do sleep 0.05; done
    "${CLEAN[@]}" /usr/sbin/sshd -D -f "$RUN/sshd_config" &
    while :; do sleep 3600 & wait $! || true; done
}

# boot NAME: starts a host, and waits until its sshd answers.
boot() {
    local name=$1 k=${1#n} pid
    setsid unshare -n -m -u -i -p -f --kill-child --propagation private \
        "$SELF" host-main "$name" </dev/null >"$RUN/$name.log" 2>&1 &
    pid=$(child_of $!)
    echo "$pid" >"$RUN/$name.pid"
    ip link add "hetu$$v$k" type veth peer name "hetu$$p$k"
    ip link set "hetu$$v$k" netns "$pid" name eth0
    ip link set "hetu$$p$k" netns "$(cat "$RUN/switch.pid")" name "$name"
    in_switch ip link set "$name" master br0 up
    in_net "$name" ip addr add "$NET.$k/24" dev eth0
    in_net "$name" ip link set eth0 up
    for _ in $(seq 200); do
        ! in_net "$name" bash -c "exec 3<>/dev/tcp/$NET.$k/22" 2>/dev/null || return 0
        sleep 0.05
    done
    die "$name: no sshd: $(cat "$RUN/$name.log")"
}

halt() {
    local pid
    pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 0
    kill -KILL "$pid" 2>/dev/null || true
    for _ in $(seq 200); do [ -e "/proc/$pid" ] || break; sleep 0.02; done
    in_switch ip link del "$1" 2>/dev/null || true
    rm -f "$RUN/$1.pid"
}

down() {
    local name
    for name in $(names); do halt "$name"; done
    [ ! -e "$RUN/switch.pid" ] || kill -KILL "$(cat "$RUN/switch.pid")" 2>/dev/null || true
    rm -rf "$RUN"
}

# shape DEVICE RATE COMMAND...: limits what a device sends; COMMAND enters its namespace.
shape() {
    local device=$1 rate=$2
    shift 2
    "$@" tc qdisc del dev "$device" root 2>/dev/null || true
    [ "$rate" = none ] ||
        "$@" tc qdisc add dev "$device" root tbf rate "$rate" burst 32k latency 400ms
}

# missing: what this machine lacks to make hosts.
missing() {
    [ "$(id -u)" = 0 ] || echo "root"
    for tool in ip tc nsenter unshare ssh ssh-keygen; do
        command -v "$tool" >/dev/null || echo "$tool"
    done
    [ -x /usr/sbin/sshd ] || echo "sshd (openssh-server)"
    unshare -n -m -u -i -p -f true 2>/dev/null || echo "the right to make namespaces"
}

write_settings() {
    local keys=$RUN/keys
    mkdir -p "$keys" "$SHARED"
    [ -e "$keys/id" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/id"
    [ -e "$keys/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/host"
    cat >"$keys/sshd_config" <<END
Port 22
HostKey $RUN/host
AuthorizedKeysFile $RUN/id.pub
PidFile none
PermitRootLogin yes
PasswordAuthentication no
StrictModes no
UsePAM no
PrintMotd no
LogLevel ERROR
END
    cat >"$keys/config" <<END
Host n* 10.77.*
    IdentityFile ~/.ssh/id
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
END
}

# guard PROCESS: takes the cluster down when the process has ended.
guard() {
    while [ -e "/proc/$1" ] && [ -e "$RUN/switch.pid" ]; do sleep 1; done
    [ ! -e "$RUN/switch.pid" ] || down
}

case ${1-} in
host-main) host_main "$2" ;;
guard) guard "$2" ;;
needs) missing ;;
up)
    [ ! -e "$RUN/switch.pid" ] || die "there is a cluster at $BASE already"
    [ "$2" -ge 1 ] && [ "$2" -le $MOST ] || die "1 to $MOST hosts can be made"
    write_settings
    setsid unshare -n sleep infinity </dev/null >/dev/null 2>&1 &
    switch=$!
    echo "$switch" >"$RUN/switch.pid"
    setsid "$SELF" guard "${HOSTS_OWNER-$switch}" </dev/null >/dev/null 2>&1 &
    for _ in $(seq 100); do
        [ "$(readlink /proc/self/ns/net)" = "$(readlink "/proc/$switch/ns/net")" ] || break
        sleep 0.02
    done
    sleep 0.3
    for bridge in br0 br1; do in_switch ip link add $bridge type bridge; done
    for bridge in br0 br1; do in_switch ip link set $bridge up; done
    for k in $(seq "$2"); do boot "n$k"; done ;;
down) down ;;
on)
    pid=$(pid_of "$2")
    shift 2
    exec nsenter -t "$pid" -m -u -i -n -p "${CLEAN[@]}" /bin/bash -c "cd /root; $*" ;;
rate)
    shape eth0 "$3" nsenter -t "$(pid_of "$2")" -n
    shape "$2" "$3" nsenter -t "$(cat "$RUN/switch.pid")" -n ;;
link) in_switch ip link set "$2" "$3" ;;
part) for name in ${2//,/ }; do in_switch ip link set "$name" master br1; done ;;
heal) for name in $(names); do in_switch ip link set "$name" master br0; done ;;
kill) halt "$2" ;;
boot) boot "$2" ;;
bytes)
    for name in $(names); do
        echo "$name $(in_switch ip -s link show dev "$name" |
            awk '/RX:|TX:/ {getline; printf "%s ", $1}')"
    done ;;
processes)
    pid=$(pid_of "$2")
    space=$(readlink "/proc/$pid/ns/pid")
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/ns/pid" 2>/dev/null)" = "$space" ] || continue
        words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null) || continue
        case $words in *"$3"*) echo "${process#/proc/} $words" ;; esac
    done ;;
*)
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0"
    exit 1 ;;
esac
