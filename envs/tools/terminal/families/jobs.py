"""Processes: run jobs in the order of what they need, and note how they end."""

from __future__ import annotations

from turngym.envs.tools.terminal.task import Draw, Task, file, folders, text

_GOAL = """Run each jobs/NAME.sh once with bash, in this folder, after the jobs that its line `# after:` names. If \
one of these has ended with another exit code than 0, or was not run, do not run it. Write {report}: a line `NAME \
CODE` for each job that was run, with its exit code, and `NAME {word}` for the others, in byte order. A job ended \
by signal N counts as 128 + N. The jobs write to the folder out."""
_SOLUTION = """declare -A code after
for path in jobs/*.sh; do
  name=${{path#jobs/}} name=${{name%.sh}}
  after[$name]=$(sed -n 's/^# after://p' "$path")
done
while [ ${{#code[@]}} -lt ${{#after[@]}} ]; do
  for name in "${{!after[@]}}"; do
    [ -n "${{code[$name]}}" ] && continue
    state=run
    for other in ${{after[$name]}}; do
      case ${{code[$other]}} in '') state=wait; break ;; 0) ;; *) state=skip ;; esac
    done
    if [ $state = skip ]; then code[$name]={word}
    elif [ $state = run ]; then bash "jobs/$name.sh" 2> /dev/null; code[$name]=$?; fi
  done
done
for name in "${{!code[@]}}"; do echo "$name ${{code[$name]}}"; done | sort > {report}"""
_SIGNALS = {"TERM": 15, "KILL": 9, "HUP": 1}


def jobs(draw: Draw) -> Task:
    """Draw a task of running jobs."""
    names = draw.words(draw.scale(3, 5))
    report, word = f"{draw.words(1)[0]}.txt", draw.words(1)[0]
    codes, values, files = dict[str, str](), dict[str, int](), {}
    for place, name in enumerate(names):
        after = sorted(draw.some(names[:place], min(place, draw.number(0, 2))))
        factor, start = draw.number(2, 9), draw.number(10, 99)
        terms = " + ".join([str(start), *(f"{factor} * $(cat out/{other}.txt)" for other in after)])
        end, code = _end(draw)
        lines = ["# after:" + "".join(f" {other}" for other in after), f"echo $(({terms})) > out/{name}.txt", end]
        files[f"jobs/{name}.sh"] = file("\n".join(lines) + "\n")
        if all(codes[other] == "0" for other in after):
            codes[name] = str(code)
            values[name] = start + sum(factor * values[other] for other in after)
        else:
            codes[name] = word
    wanted = {f"out/{name}.txt": text([str(value)]) for name, value in values.items()}
    wanted[report] = text([f"{name} {code}" for name, code in sorted(codes.items())])
    words = {"report": report, "word": word}
    tree = folders(dict(sorted(files.items())), "out")
    return Task(_GOAL.format(**words), tree, wanted, ("head jobs/*", _SOLUTION.format(**words)))


def _end(draw: Draw) -> tuple[str, int]:
    """Return the last line of a job, and its exit code."""
    kind = draw.number(0, 5)
    if kind == 0:
        signal = draw.pick(sorted(_SIGNALS))
        return f"kill -{signal} $$", 128 + _SIGNALS[signal]
    code = draw.number(1, 99) if kind == 1 else 0
    return f"exit {code}", code
