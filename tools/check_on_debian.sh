#!/bin/sh
# Runs README's two commands, demo.sh and check.sh, on the committed sources in a fresh chroot of a
# Debian release, which debootstrap makes. The exit status is that of the first command that
# fails; 77 without root, debootstrap or git.
#
#     tools/check_on_debian.sh RELEASE [FOLDER]      trixie, bookworm
#
# The chroot is made in FOLDER and kept; without FOLDER, in a temporary folder, and deleted. MIRROR
# names a Debian mirror (default: http://deb.debian.org/debian).
set -eu
[ $# -ge 1 ] && [ $# -le 2 ] || {
    echo "usage: tools/check_on_debian.sh RELEASE [FOLDER]" >&2
    exit 2
}
sources=$(cd "$(dirname "$0")/.." && pwd) release=$1

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null || ! command -v git >/dev/null; then
    echo "skipped: a chroot of $release needs root, debootstrap and git"
    exit 77
fi

# The mounts are in a namespace of this process and end with it.
if [ -z "${HETU_IN_NAMESPACE:-}" ]; then
    HETU_IN_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

if [ $# = 2 ]; then
    root=$2
    mkdir "$root"
else
    root=$(mktemp -d)
    trap 'umount -R "$root/dev" "$root/proc" "$root/sys" && rm -rf --one-file-system "$root"' EXIT
fi
debootstrap --variant=minbase "$release" "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$root.log" 2>&1 || {
    cat "$root.log" >&2
    exit 1
}
rm -f "$root.log"
for folder in proc sys dev; do
    mount --rbind "/$folder" "$root/$folder"
done
cp /etc/resolv.conf "$root/etc/"
git clone --quiet "$sources" "$root/root/hetucc"

for command in tools/demo.sh tools/check.sh; do
    echo "+ $release: $command"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot "$root" sh -c "cd /root/hetucc && $command"
done
