# misused.sh FOLDER: runs each tool of the folder with a mistake in its command line; prints line, exit status and message.
PATH=$1:$PATH
while read -r line; do
    said=$($line 2>&1 > out.txt < /dev/null)
    status=$?
    [ -s out.txt ] && echo "standard output has text"
    rm -f out.txt
    echo "$line: $status, ${said#"${line%% *}: error: "}"
done << 'END'
hetucc --verison
hetucc --strategy
hetucc model.c -o
hetucc model.c one.strategy
hetucc -E --plan model.c
heturun --nonsense
heturun -Q
heturun -n
heturun -n 4 --garce=3 ./model
heturun
hetu-plan --limit
hetu-plan --certify=3 malleus -
hetu-plan
hetu-simulate --stpes=3
hetu-simulate model.c
hetu-simulate --json=3 model.c
hetu-balance --raets=1,1 model.c
hetu-balance --rates
hetu-balance --rates=1,1 -c model.c
hetu-reshard --bacth=x
hetu-reshard
hetu-profile --hepl
hetu-profile
hetu-opt --verison
hetu-opt a b c
hetu-opt memroy model.c
hetu-operators --refrence
END
for tool in hetucc heturun hetu-plan hetu-simulate hetu-balance hetu-reshard hetu-profile hetu-opt hetu-operators; do
    $tool --help > help.txt && [ -s help.txt ] || echo "$tool --help says nothing"
    rm -f help.txt
done
