"""Families of tasks: each draws tasks of one kind."""

from __future__ import annotations

from collections.abc import Mapping

from turngym.envs.tools.terminal.families.archives import archives
from turngym.envs.tools.terminal.families.build import build
from turngym.envs.tools.terminal.families.commits import commits
from turngym.envs.tools.terminal.families.duplicates import duplicates
from turngym.envs.tools.terminal.families.inbox import inbox
from turngym.envs.tools.terminal.families.jobs import jobs
from turngym.envs.tools.terminal.families.logs import logs
from turngym.envs.tools.terminal.families.modes import modes
from turngym.envs.tools.terminal.families.server import server
from turngym.envs.tools.terminal.families.table import table
from turngym.envs.tools.terminal.families.timetable import timetable
from turngym.envs.tools.terminal.task import Family

FAMILIES: Mapping[str, Family] = {
    each.__name__: each
    for each in (archives, build, commits, duplicates, inbox, jobs, logs, modes, server, table, timetable)
}
