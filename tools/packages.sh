# Debian packages for building and testing; read by check.sh and demo.sh. `install_packages` installs
# those that are missing.

PACKAGES="gcc g++ libc6-dev make cmake ninja-build pkg-config python3 libclang-19-dev llvm-19-tools libopenmpi-dev openmpi-bin libopenblas-openmp-dev libdnnl-dev libcmocka-dev libjansson-dev libglpk-dev libmpfr-dev uthash-dev zlib1g-dev groff-base man-db lowdown locales"

# Prints the packages that are not installed.
missing_packages()
{
    for package in $PACKAGES; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$package"
    done
}

# Runs a command as root.
as_root()
{
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "These packages are missing, and this is neither root nor is there sudo: $missing" >&2
        exit 1
    fi
}

install_packages()
{
    if ! command -v dpkg-query >/dev/null; then
        echo "This is not Debian: install what CMake asks for by hand." >&2
        return
    fi
    missing=$(missing_packages)
    [ -z "$missing" ] && return
    echo "Installing: $missing"
    as_root apt-get update -qq
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

# Open MPI refuses to run as root unless it is told twice.
allow_mpi()
{
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
}
