# interrupt.sh HETUCC SOURCE FOLDER: ends hetucc by a signal while its C compiler runs; prints what it leaves behind. The compiler sleeps on, and holds no output open.
mkdir -p "$3/temporary" "$3/bin"
printf '#!/bin/sh\ntouch "%s/started"\nexec sleep 20 >/dev/null 2>&1\n' "$3" > "$3/bin/slow-cc"
chmod +x "$3/bin/slow-cc"
TMPDIR="$3/temporary" CC="$3/bin/slow-cc" "$1" --strategy=dp2 -c "$2" -o "$3/object.o" &
compiler=$!
while [ ! -e "$3/started" ] && kill -0 $compiler 2>/dev/null; do sleep 0.05; done
kill -TERM $compiler
wait $compiler
echo "status $?"
ls -A "$3/temporary" "$3"
