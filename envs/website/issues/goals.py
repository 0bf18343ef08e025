"""Goals in the issue tracker."""

from __future__ import annotations

from turngym.envs.website import words
from turngym.envs.website.draw import Draw, Maker, NoGoal, Record
from turngym.envs.website.goal import Goal, New, Task, Wanted, look, sets
from turngym.envs.website.issues.data import ANY, ME, NOBODY, NONE, PRIORITIES
from turngym.envs.website.page import OFF, ON
from turngym.envs.website.site import address, pages_of

MOST = 3
"""Issues that one goal is about at most."""


def _edit(issue: Record, *via: str, **cells: str) -> Task:
    """Return the task of changing an issue."""
    path = f"/issues/{issue['id']}/edit"
    by = (*via, f"/issues/{issue['id']}") if via else ()
    return Task(path, path, cells, sets("issue", issue["id"], **cells), by)


def _label(issue: Record, label: Record, *via: str) -> Task:
    """Return the task of giving an issue a label."""
    path = f"/issues/{issue['id']}/labels"
    wanted = Wanted("issue_label", 0, {"issue": issue["id"], "label": label["id"]})
    by = (*via, f"/issues/{issue['id']}") if via else ()
    return Task(path, path, {label["name"]: ON}, (wanted,), by)


def _labels(issues: list[Record], has: set[int], label: Record, *via: str) -> tuple[Task, ...]:
    """Return the tasks of giving a label to those of some issues that have it not; the others are looked at."""
    if has.issuperset(each["id"] for each in issues):
        raise NoGoal
    return tuple(
        look(f"/issues/{each['id']}", *via) if each["id"] in has else _label(each, label, *via) for each in issues
    )


def _comment(issue: Record, text: str) -> Task:
    """Return the task of commenting on an issue."""
    path = f"/issues/{issue['id']}"
    wanted = Wanted("comment", 0, {"issue": issue["id"], "author": ME, "text": text})
    return Task(path, f"{path}/comment", {"comment": text}, (wanted,))


def _labelled(draw: Draw, label: Record) -> set[int]:
    """Return the issues that have a label."""
    return {link["issue"] for link in draw.records("issue_label", label=label["id"])}


def _with(issues: list[Record], low: int = 2) -> list[Record]:
    """Return the issues if they are as many as a goal may be about."""
    if not low <= len(issues) <= MOST:
        raise NoGoal
    return issues


def close(draw: Draw) -> Goal:
    """Close one issue, with a comment."""
    issue, remark = draw.one(draw.records("issue", status="open")), draw.one(words.CLOSING_REMARKS)
    text = f'Close the issue "{issue["title"]}" and add the comment "{remark}" to it.'
    return Goal(text, (_edit(issue, status="closed"), _comment(issue, remark)))


def triage(draw: Draw) -> Goal:
    """Set priority and assignee of one issue."""
    issue = draw.one(draw.records("issue"))
    priority = draw.one([each for each in PRIORITIES if each != issue["priority"]])
    person = draw.one([each["name"] for each in draw.records("person") if each["name"] != issue["assignee"]])
    text = f'Set the priority of the issue "{issue["title"]}" to {priority} and assign it to {person}.'
    return Goal(text, (_edit(issue, priority=priority, assignee=person),))


def file(draw: Draw) -> Goal:
    """Write a new issue, with a label."""
    issues = draw.records("issue")
    taken = {each["title"] for each in issues}
    title = draw.one([name for name in (f"{draw.one(words.DEVICES)} {draw.one(words.TROUBLES)}",) if name not in taken])
    body, priority = draw.one(words.DETAILS), draw.one([each for each in PRIORITIES if each != "normal"])
    person, label = draw.one(draw.records("person"))["name"], draw.one(draw.records("label"))
    fields = {"title": title, "body": body, "priority": priority, "assignee": person}
    number = issues[-1]["id"] + 1
    wanted = Wanted("issue", 0, fields | {"status": "open", "milestone": NONE})
    path = f"/issues/{number}/labels"
    labelled = Wanted("issue_label", 0, {"issue": New("issue"), "label": label["id"]})
    text = (
        f'File the new issue "{title}" with the body "{body}", priority {priority}, assigned to {person}, '
        f"and give it the label {label['name']}."
    )
    create = Task("/issues/new", "/issues/new", fields, (wanted,))
    return Goal(text, (create, Task(path, path, {label["name"]: ON}, (labelled,))))


def label_all(draw: Draw) -> Goal:
    """Give a label to all open issues of one device."""
    device, label = draw.one(words.DEVICES), draw.one(draw.records("label"))
    issues = _with([each for each in draw.records("issue", status="open") if device in each["title"]])
    has = _labelled(draw, label)
    text = f'Give the label {label["name"]} to every open issue with "{device}" in its title.'
    by = ("/issues", address("/issues", {"search": device, "status": "open"}))
    return Goal(text, (look(by[1], by[0]), *_labels(issues, has, label, *by)))


def reassign(draw: Draw) -> Goal:
    """Hand the open issues of one person to another."""
    old, new = draw.some(draw.records("person"), 2, 2)
    if draw.share() < 0.5:
        old, new = new, old
    issues = _with(draw.records("issue", status="open", assignee=old["name"]))
    text = f"{old['name']} is away. Assign all open issues of {old['name']} to {new['name']}."
    by = ("/people", f"/people/{old['id']}")
    return Goal(text, (look(by[1], by[0]), *(_edit(each, *by, assignee=new["name"]) for each in issues)))


def plan(draw: Draw) -> Goal:
    """Make a milestone, and put two issues into it."""
    taken = {each["name"] for each in draw.records("milestone")}
    name = draw.one([each for each in words.MILESTONES if each not in taken])
    one, other = draw.some(draw.records("issue", status="open"), 2, 2)
    text = f'Make the milestone "{name}" and put the issues "{one["title"]}" and "{other["title"]}" into it.'
    make = Task("/milestones", "/milestones", {"name": name}, (Wanted("milestone", 0, {"name": name}),))
    return Goal(text, (make, _edit(one, milestone=name), _edit(other, milestone=name)))


def duplicate(draw: Draw) -> Goal:
    """Close an issue, and name the number of the other one in a comment."""
    issue, other = draw.some(draw.records("issue", status="open"), 2, 2)
    text = (
        f'The issue "{issue["title"]}" is the same as "{other["title"]}". Close the first one, and add the comment '
        f'"same as #N" to it, where N is the number of the other.'
    )
    found = address("/issues", {"search": other["title"], "status": ANY})
    return Goal(
        text, (look(found, "/issues"), _edit(issue, status="closed"), _comment(issue, f"same as #{other['id']}"))
    )


def rename_label(draw: Draw) -> Goal:
    """Rename a label, and take it off one issue."""
    label, link = draw.one(draw.records("label")), None
    taken = {each["name"] for each in draw.records("label")}
    name = draw.one([each for each in words.LABELS if each not in taken])
    link = draw.one(draw.records("issue_label", label=label["id"]))
    issue = draw.one(draw.records("issue", id=link["issue"]))
    page, path = f"/labels/{label['id']}", f"/issues/{issue['id']}/labels"
    text = f'Rename the label "{label["name"]}" to "{name}", and take it off the issue "{issue["title"]}".'
    rename = Task(page, page, {"name": name}, sets("label", label["id"], name=name))
    return Goal(text, (rename, Task(path, path, {name: OFF}, (Wanted("issue_label", link["id"], {}),))))


def merge_labels(draw: Draw) -> Goal:
    """Give one label to all issues of another, and delete that."""
    old, new = draw.some(draw.records("label"), 2, 2)
    if draw.share() < 0.5:
        old, new = new, old
    has, had = _labelled(draw, new), _labelled(draw, old)
    issues = _with([each for each in draw.records("issue") if each["id"] in had], 1)
    page = f"/labels/{old['id']}"
    gone = [Wanted("issue_label", each["id"], {}) for each in draw.records("issue_label", label=old["id"])]
    text = (
        f'Give the label "{new["name"]}" to every issue that has the label "{old["name"]}", '
        f'and then delete the label "{old["name"]}".'
    )
    delete = Task(page, f"{page}/delete", {}, (*gone, Wanted("label", old["id"], {})))
    return Goal(text, (look(page, "/labels"), *_labels(issues, has, new, "/labels", page), delete))


def least_busy(draw: Draw) -> Goal:
    """Assign an issue to whoever of a team has the fewest open ones."""
    team = draw.one(words.TEAMS)
    counts = {
        each["name"]: len(draw.records("issue", status="open", assignee=each["name"]))
        for each in draw.records("person", team=team)
    }
    fewest = [name for name, count in counts.items() if count == min(counts.values())]
    issue = draw.one(draw.records("issue", status="open", assignee=NOBODY))
    if len(fewest) > 1:
        raise NoGoal
    text = (
        f'Assign the issue "{issue["title"]}" to the person of team {team} who has the fewest open issues, and add the '
        f'comment "over to NAME" to it, where NAME is the name of that person.'
    )
    remark = _comment(issue, f"over to {fewest[0]}")  # cannot be undone: trying one person after another is no way
    return Goal(text, (look("/people"), _edit(issue, assignee=fewest[0]), remark))


def sweep(draw: Draw) -> Goal:
    """Close what is open in a milestone at one priority."""
    milestone, priority = draw.one(draw.records("milestone")), draw.one(PRIORITIES)
    issues = draw.records("issue", status="open", milestone=milestone["name"])
    low = _with([each for each in issues if each["priority"] == priority], 1)
    text = f"Close every open issue of the milestone {milestone['name']} that has the priority {priority}."
    by = ("/milestones", f"/milestones/{milestone['id']}")
    seen = pages_of(by[1], len(issues))
    return Goal(text, (*(look(each, *by) for each in seen), *(_edit(each, *by, status="closed") for each in low)))


KINDS: dict[str, Maker] = {
    "close": close,
    "triage": triage,
    "file": file,
    "label_all": label_all,
    "reassign": reassign,
    "plan": plan,
    "duplicate": duplicate,
    "rename_label": rename_label,
    "merge_labels": merge_labels,
    "least_busy": least_busy,
    "sweep": sweep,
}
"""Kind of goal -> what makes one."""
