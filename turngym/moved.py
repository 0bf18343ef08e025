"""Modules that have been moved: their old dotted paths can be imported for one more version, with a warning.

Files written by earlier versions (snapshots, run folders, submissions) name modules, too; what reads them asks
:func:`current`. A module that moves gets one line in ``MOVED``; a package takes its modules along.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # at run time it costs `import turngym` time

MOVED: Mapping[str, str] = {
    "turngym.access": "turngym.web.access",
    "turngym.agents.backends": "turngym.agents.players",
    "turngym.agents.background": "turngym.agents.servers.background",
    "turngym.agents.best_of": "turngym.agents.episodes.best_of",
    "turngym.agents.branching": "turngym.agents.episodes.branching",
    "turngym.agents.chances": "turngym.agents.models.action_probabilities",
    "turngym.agents.chat_server": "turngym.agents.servers.client",
    "turngym.agents.chat_template": "turngym.agents.prompting.chat_template",
    "turngym.agents.embedded": "turngym.agents.models.embedded",
    "turngym.agents.evaluate": "turngym.agents.episodes.evaluate",
    "turngym.agents.generate": "turngym.agents.models.generate",
    "turngym.agents.groups": "turngym.agents.episodes.groups",
    "turngym.agents.model_agent": "turngym.agents.models.agent",
    "turngym.agents.model_settings": "turngym.agents.models.settings",
    "turngym.agents.model_size": "turngym.agents.models.size",
    "turngym.agents.models.sampling": "turngym.agents.sampling",
    "turngym.agents.pass_k": "turngym.agents.episodes.pass_k",
    "turngym.agents.prompt_fitting": "turngym.agents.prompting.fitting",
    "turngym.agents.prompts": "turngym.agents.prompting.prompts",
    "turngym.agents.rollout": "turngym.agents.episodes.rollout",
    "turngym.agents.seat_player": "turngym.agents.episodes.seat_player",
    "turngym.agents.self_play": "turngym.agents.episodes.self_play",
    "turngym.agents.server_agent": "turngym.agents.servers.agent",
    "turngym.agents.server_check": "turngym.agents.servers.check",
    "turngym.agents.server_config": "turngym.agents.servers.config",
    "turngym.agents.server_prompts": "turngym.agents.servers.prompts",
    "turngym.agents.styled_agent": "turngym.agents.players.styled",
    "turngym.agents.styles": "turngym.agents.prompting.styles",
    "turngym.agents.text_encoder": "turngym.agents.prompting.text_encoder",
    "turngym.agents.turn_writer": "turngym.agents.episodes.turn_writer",
    "turngym.agents.vllm_config": "turngym.agents.models.vllm_config",
    "turngym.agents.vllm_sampler": "turngym.agents.models.vllm_sampler",
    "turngym.agents.vllm_weights": "turngym.agents.models.vllm_weights",
    "turngym.benchmarks.bradley_terry": "turngym.benchmarks.statistics.bradley_terry",
    "turngym.benchmarks.commands": "turngym.benchmarks.cli",
    "turngym.benchmarks.commands.eval_display": "turngym.benchmarks.cli.terminal.evaluation",
    "turngym.benchmarks.commands.half_blocks": "turngym.benchmarks.cli.terminal.half_blocks",
    "turngym.benchmarks.commands.parsing": "turngym.benchmarks.cli.options.parsing",
    "turngym.benchmarks.commands.play_commands": "turngym.benchmarks.cli.terminal.play_commands",
    "turngym.benchmarks.commands.play_screen": "turngym.benchmarks.cli.terminal.play_screen",
    "turngym.benchmarks.commands.play_session": "turngym.benchmarks.cli.terminal.play_session",
    "turngym.benchmarks.commands.prompt_options": "turngym.benchmarks.cli.options.prompts",
    "turngym.benchmarks.commands.tournament_tables": "turngym.benchmarks.tournaments.tables",
    "turngym.benchmarks.commands.train_closing": "turngym.benchmarks.cli.terminal.training",
    "turngym.benchmarks.commands.trained_models": "turngym.benchmarks.cli.options.trained_models",
    "turngym.benchmarks.commands.usage": "turngym.benchmarks.cli.options.usage",
    "turngym.benchmarks.comparison": "turngym.benchmarks.evaluation.comparison",
    "turngym.benchmarks.evaluation_folder": "turngym.benchmarks.evaluation.folder",
    "turngym.benchmarks.evaluation_run": "turngym.benchmarks.evaluation.run",
    "turngym.benchmarks.evaluation_scoring": "turngym.benchmarks.evaluation.scoring",
    "turngym.benchmarks.evaluation_tries": "turngym.benchmarks.evaluation.tries",
    "turngym.benchmarks.inspect_tasks": "turngym.benchmarks.exports.inspect_tasks",
    "turngym.benchmarks.leaderboard_rows": "turngym.benchmarks.leaderboard.entries",
    "turngym.benchmarks.normalised": "turngym.benchmarks.statistics.normalised",
    "turngym.benchmarks.pages.differences": "turngym.benchmarks.pages.viewer.differences",
    "turngym.benchmarks.pages.episode_forms": "turngym.benchmarks.pages.viewer.forms",
    "turngym.benchmarks.pages.jsonl": "turngym.benchmarks.pages.viewer.jsonl",
    "turngym.benchmarks.pages.recordings": "turngym.benchmarks.pages.viewer.recordings",
    "turngym.benchmarks.pages.replayed": "turngym.benchmarks.pages.viewer.replayed",
    "turngym.benchmarks.pages.runs": "turngym.benchmarks.pages.viewer.runs",
    "turngym.benchmarks.pages.summaries": "turngym.benchmarks.pages.viewer.summaries",
    "turngym.benchmarks.pages.viewer_data": "turngym.benchmarks.pages.viewer.data",
    "turngym.benchmarks.pages.viewer_file": "turngym.benchmarks.pages.viewer.file",
    "turngym.benchmarks.pages.viewer_page": "turngym.benchmarks.pages.viewer.page",
    "turngym.benchmarks.pages.viewer_server": "turngym.benchmarks.pages.viewer.server",
    "turngym.benchmarks.pairings": "turngym.benchmarks.tournaments.pairings",
    "turngym.benchmarks.ratings": "turngym.benchmarks.statistics.ratings",
    "turngym.benchmarks.remade": "turngym.benchmarks.evaluation.remade",
    "turngym.benchmarks.rulesets": "turngym.benchmarks.evaluation.rulesets",
    "turngym.benchmarks.shapes": "turngym.benchmarks.evaluation.shapes",
    "turngym.benchmarks.submission": "turngym.benchmarks.evaluation.records",
    "turngym.benchmarks.submission_read": "turngym.benchmarks.evaluation.submission",
    "turngym.benchmarks.tournament": "turngym.benchmarks.tournaments.run",
    "turngym.benchmarks.tournament_plan": "turngym.benchmarks.tournaments.plan",
    "turngym.benchmarks.tournament_read": "turngym.benchmarks.tournaments.submission",
    "turngym.benchmarks.tournament_results": "turngym.benchmarks.tournaments.results",
    "turngym.benchmarks.tournament_seats": "turngym.benchmarks.tournaments.seats",
    "turngym.benchmarks.tournament_store": "turngym.benchmarks.tournaments.folder",
    "turngym.benchmarks.verify": "turngym.benchmarks.verification.verify",
    "turngym.benchmarks.verify_findings": "turngym.benchmarks.verification.findings",
    "turngym.benchmarks.verify_numbers": "turngym.benchmarks.verification.numbers",
    "turngym.benchmarks.verify_replay": "turngym.benchmarks.verification.replay",
    "turngym.benchmarks.verify_tasks": "turngym.benchmarks.verification.tasks",
    "turngym.benchmarks.verify_tournament": "turngym.benchmarks.verification.tournaments",
    "turngym.bounded": "turngym.storage.bounded",
    "turngym.envs.calls": "turngym.envs.parsing.calls",
    "turngym.envs.desktop.goal": "turngym.envs.desktop.goals.base",
    "turngym.envs.desktop.goals_editor": "turngym.envs.desktop.goals.editor",
    "turngym.envs.desktop.goals_sheet": "turngym.envs.desktop.goals.sheet",
    "turngym.envs.desktop.oracle": "turngym.envs.desktop.goals.oracle",
    "turngym.envs.desktop.words": "turngym.envs.desktop.goals.words",
    "turngym.envs.json_text": "turngym.envs.parsing.json_text",
    "turngym.envs.multiagent.aec": "turngym.envs.multiagent.pettingzoo.aec",
    "turngym.envs.multiagent.desk": "turngym.envs.multiagent.table_slot",
    "turngym.envs.multiagent.parallel": "turngym.envs.multiagent.pettingzoo.parallel",
    "turngym.envs.multiagent.zoo": "turngym.envs.multiagent.pettingzoo.base",
    "turngym.envs.scanning": "turngym.envs.parsing.scanning",
    "turngym.envs.search.encoder": "turngym.envs.search.embedding.encoder",
    "turngym.envs.search.vectors": "turngym.envs.search.embedding.vectors",
    "turngym.envs.tablegames.bargaining_players": "turngym.envs.tablegames.bargaining.players",
    "turngym.envs.tablegames.bargaining_reading": "turngym.envs.tablegames.bargaining.reading",
    "turngym.envs.tablegames.bargaining_rules": "turngym.envs.tablegames.bargaining.rules",
    "turngym.envs.tablegames.connect_four_rules": "turngym.envs.tablegames.connect_four.rules",
    "turngym.envs.tablegames.kuhn_poker_players": "turngym.envs.tablegames.kuhn_poker.players",
    "turngym.envs.tablegames.kuhn_poker_rules": "turngym.envs.tablegames.kuhn_poker.rules",
    "turngym.envs.tablegames.matrix_players": "turngym.envs.tablegames.matrix_games.players",
    "turngym.envs.tablegames.matrix_rules": "turngym.envs.tablegames.matrix_games.rules",
    "turngym.envs.tablegames.negotiation_players": "turngym.envs.tablegames.simple_negotiation.players",
    "turngym.envs.tablegames.negotiation_reading": "turngym.envs.tablegames.simple_negotiation.reading",
    "turngym.envs.tablegames.negotiation_rules": "turngym.envs.tablegames.simple_negotiation.rules",
    "turngym.envs.textgames.bandit_contextual": "turngym.envs.textgames.bandit.contextual",
    "turngym.envs.textgames.bandit_core": "turngym.envs.textgames.bandit.base",
    "turngym.envs.textgames.bandit_metrics": "turngym.envs.textgames.bandit.metrics",
    "turngym.envs.textgames.bandit_players": "turngym.envs.textgames.bandit.players",
    "turngym.envs.textgames.bandit_readers": "turngym.envs.textgames.bandit.readers",
    "turngym.envs.textgames.bandit_scenarios": "turngym.envs.textgames.bandit.scenarios",
    "turngym.envs.textgames.blackjack_rules": "turngym.envs.textgames.blackjack.rules",
    "turngym.envs.textgames.blackjack_solver": "turngym.envs.textgames.blackjack.solver",
    "turngym.envs.textgames.fifteen_puzzle_rules": "turngym.envs.textgames.fifteen_puzzle.rules",
    "turngym.envs.textgames.fifteen_puzzle_solver": "turngym.envs.textgames.fifteen_puzzle.solver",
    "turngym.envs.textgames.frozen_lake_rules": "turngym.envs.textgames.frozen_lake.rules",
    "turngym.envs.textgames.game_2048_rules": "turngym.envs.textgames.game_2048.rules",
    "turngym.envs.textgames.hangman_rules": "turngym.envs.textgames.hangman.rules",
    "turngym.envs.textgames.mastermind_rules": "turngym.envs.textgames.mastermind.rules",
    "turngym.envs.textgames.maze_picture": "turngym.envs.textgames.maze.picture",
    "turngym.envs.textgames.maze_rules": "turngym.envs.textgames.maze.rules",
    "turngym.envs.textgames.minesweeper_layouts": "turngym.envs.textgames.minesweeper.layouts",
    "turngym.envs.textgames.minesweeper_picture": "turngym.envs.textgames.minesweeper.picture",
    "turngym.envs.textgames.minesweeper_rules": "turngym.envs.textgames.minesweeper.rules",
    "turngym.envs.textgames.points_deals": "turngym.envs.textgames.ez_points.deals",
    "turngym.envs.textgames.points_formula": "turngym.envs.textgames.ez_points.formula",
    "turngym.envs.textgames.points_solver": "turngym.envs.textgames.ez_points.solver",
    "turngym.envs.textgames.procedural": "turngym.envs.validation",
    "turngym.envs.textgames.sokoban_rooms": "turngym.envs.textgames.sokoban.rooms",
    "turngym.envs.textgames.sokoban_rules": "turngym.envs.textgames.sokoban.rules",
    "turngym.envs.textgames.sokoban_solver": "turngym.envs.textgames.sokoban.solver",
    "turngym.envs.textgames.sudoku_rules": "turngym.envs.textgames.sudoku.rules",
    "turngym.envs.textgames.wordle_rules": "turngym.envs.textgames.wordle.rules",
    "turngym.envs.textworlds.babyai_levels": "turngym.envs.textworlds.babyai.levels",
    "turngym.envs.textworlds.babyai_view": "turngym.envs.textworlds.babyai.view",
    "turngym.envs.textworlds.scienceworld_game": "turngym.envs.textworlds.scienceworld.game",
    "turngym.envs.textworlds.scienceworld_tasks": "turngym.envs.textworlds.scienceworld.tasks",
    "turngym.envs.textworlds.textworld_build": "turngym.envs.textworlds.textworld.build",
    "turngym.envs.textworlds.textworld_express_games": "turngym.envs.textworlds.textworld_express.games",
    "turngym.envs.textworlds.textworld_games": "turngym.envs.textworlds.textworld.games",
    "turngym.envs.textworlds.textworld_maker": "turngym.envs.textworlds.textworld.maker",
    "turngym.envs.textworlds.textworld_text": "turngym.envs.textworlds.textworld.text",
    "turngym.envs.tools.code_tests": "turngym.envs.tools.code_repair.cases",
    "turngym.envs.tools.faults": "turngym.envs.tools.code_repair.faults",
    "turngym.envs.tools.grading": "turngym.envs.tools.code_repair.grading",
    "turngym.envs.tools.math_answers": "turngym.envs.tools.math_python.answers",
    "turngym.envs.tools.math_exact": "turngym.envs.tools.math_python.exact",
    "turngym.envs.tools.math_limits": "turngym.envs.tools.math_python.limits",
    "turngym.envs.tools.math_reading": "turngym.envs.tools.math_python.reading",
    "turngym.envs.tools.math_tokens": "turngym.envs.tools.math_python.tokens",
    "turngym.envs.tools.math_values": "turngym.envs.tools.math_python.values",
    "turngym.envs.tools.mutations": "turngym.envs.tools.code_repair.mutations",
    "turngym.envs.tools.problems": "turngym.envs.tools.math_python.problems",
    "turngym.envs.tools.programs": "turngym.envs.tools.code_repair.programs",
    "turngym.envs.tools.programs_lists": "turngym.envs.tools.code_repair.programs_lists",
    "turngym.envs.tools.programs_numbers": "turngym.envs.tools.code_repair.programs_numbers",
    "turngym.envs.tools.returned": "turngym.envs.tools.code_repair.returned",
    "turngym.envs.tools.values": "turngym.envs.tools.code_repair.values",
    "turngym.envs.vector.aio": "turngym.envs.vector.backends.lanes.aio",
    "turngym.envs.vector.asyncio": "turngym.envs.vector.backends.asyncio",
    "turngym.envs.vector.backend": "turngym.envs.vector.backends.base",
    "turngym.envs.vector.boundary": "turngym.envs.vector.slots.boundary",
    "turngym.envs.vector.channel": "turngym.envs.vector.backends.channel",
    "turngym.envs.vector.fitting": "turngym.envs.vector.slots.fitting",
    "turngym.envs.vector.forks": "turngym.envs.vector.backends.forking.forks",
    "turngym.envs.vector.handle": "turngym.envs.vector.backends.forking.handle",
    "turngym.envs.vector.interrupts": "turngym.envs.vector.backends.interrupts",
    "turngym.envs.vector.lanes": "turngym.envs.vector.backends.lanes.lanes",
    "turngym.envs.vector.latency": "turngym.envs.vector.backends.latency",
    "turngym.envs.vector.loops": "turngym.envs.vector.backends.lanes.loops",
    "turngym.envs.vector.maker": "turngym.envs.vector.slots.maker",
    "turngym.envs.vector.nursery": "turngym.envs.vector.backends.forking.fork_server",
    "turngym.envs.vector.process": "turngym.envs.vector.backends.process",
    "turngym.envs.vector.ray": "turngym.envs.vector.backends.ray",
    "turngym.envs.vector.ray_host": "turngym.envs.vector.backends.remote.ray_host",
    "turngym.envs.vector.ray_session": "turngym.envs.vector.backends.remote.ray_session",
    "turngym.envs.vector.slot": "turngym.envs.vector.slots.slot",
    "turngym.envs.vector.sync": "turngym.envs.vector.backends.sync",
    "turngym.envs.vector.thread": "turngym.envs.vector.backends.thread",
    "turngym.envs.vector.worker": "turngym.envs.vector.backends.worker",
    "turngym.envs.vector.workers": "turngym.envs.vector.backends.workers",
    "turngym.envs.web.actions": "turngym.envs.web.driver.actions",
    "turngym.envs.web.browser": "turngym.envs.web.driver.browser",
    "turngym.envs.web.chromium": "turngym.envs.web.driver.chromium",
    "turngym.envs.web.frames": "turngym.envs.web.driver.frames",
    "turngym.envs.web.hands": "turngym.envs.web.driver.hands",
    "turngym.envs.web.keeper": "turngym.envs.web.driver.keeper",
    "turngym.envs.web.marks": "turngym.envs.web.driver.marks",
    "turngym.envs.web.miniwob_oracles": "turngym.envs.web.miniwob.oracles.table",
    "turngym.envs.web.miniwob_page": "turngym.envs.web.miniwob.page",
    "turngym.envs.web.miniwob_screen": "turngym.envs.web.miniwob.screen",
    "turngym.envs.web.miniwob_tasks": "turngym.envs.web.miniwob.tasks",
    "turngym.envs.web.oracle": "turngym.envs.web.miniwob.oracles.base",
    "turngym.envs.web.oracles_click": "turngym.envs.web.miniwob.oracles.click",
    "turngym.envs.web.oracles_form": "turngym.envs.web.miniwob.oracles.form",
    "turngym.envs.web.oracles_mail": "turngym.envs.web.miniwob.oracles.mail",
    "turngym.envs.web.oracles_mouse": "turngym.envs.web.miniwob.oracles.mouse",
    "turngym.envs.web.oracles_widget": "turngym.envs.web.miniwob.oracles.widget",
    "turngym.envs.web.page": "turngym.envs.web.driver.page",
    "turngym.envs.web.tab": "turngym.envs.web.driver.tab",
    "turngym.envs.web.thread": "turngym.envs.web.driver.thread",
    "turngym.envs.web.tree": "turngym.envs.web.driver.tree",
    "turngym.envs.website.issues_data": "turngym.envs.website.issues.data",
    "turngym.envs.website.issues_goals": "turngym.envs.website.issues.goals",
    "turngym.envs.website.issues_pages": "turngym.envs.website.issues.pages",
    "turngym.envs.website.mail_data": "turngym.envs.website.mail.data",
    "turngym.envs.website.mail_goals": "turngym.envs.website.mail.goals",
    "turngym.envs.website.mail_pages": "turngym.envs.website.mail.pages",
    "turngym.envs.website.shop_data": "turngym.envs.website.shop.data",
    "turngym.envs.website.shop_goals": "turngym.envs.website.shop.goals",
    "turngym.envs.website.shop_pages": "turngym.envs.website.shop.pages",
    "turngym.failures": "turngym.terminal.failures",
    "turngym.files": "turngym.storage.files",
    "turngym.folders": "turngym.storage.folders",
    "turngym.html": "turngym.web.html",
    "turngym.interrupted": "turngym.terminal.interrupted",
    "turngym.limited": "turngym.system.limited",
    "turngym.locks": "turngym.system.locks",
    "turngym.output": "turngym.terminal.output",
    "turngym.page": "turngym.web.page",
    "turngym.printable": "turngym.text",
    "turngym.processes": "turngym.system.processes",
    "turngym.trainers.algorithm": "turngym.trainers.core.algorithm",
    "turngym.trainers.checkpoint": "turngym.trainers.loop.checkpoint",
    "turngym.trainers.clipped": "turngym.trainers.algorithms.base.clipped",
    "turngym.trainers.columns": "turngym.trainers.core.columns",
    "turngym.trainers.config": "turngym.trainers.settings.config",
    "turngym.trainers.context": "turngym.trainers.core.context",
    "turngym.trainers.control": "turngym.trainers.loop.control",
    "turngym.trainers.critic": "turngym.trainers.algorithms.base.critic",
    "turngym.trainers.curve": "turngym.trainers.report.curve",
    "turngym.trainers.diagnosis": "turngym.trainers.report.diagnosis",
    "turngym.trainers.findings": "turngym.trainers.report.findings",
    "turngym.trainers.finite": "turngym.trainers.core.finite",
    "turngym.trainers.flattened": "turngym.trainers.core.flattened",
    "turngym.trainers.functional.weights": "turngym.trainers.core.weights",
    "turngym.trainers.game_task": "turngym.trainers.loop.game_task",
    "turngym.trainers.guards": "turngym.trainers.settings.guards",
    "turngym.trainers.headline": "turngym.trainers.report.headline",
    "turngym.trainers.job": "turngym.trainers.loop.job",
    "turngym.trainers.joint_critic": "turngym.trainers.engine.joint_critic",
    "turngym.trainers.learner": "turngym.trainers.engine.learner",
    "turngym.trainers.loop.making": "turngym.trainers.loop.task_factory",
    "turngym.trainers.making": "turngym.trainers.loop.task_factory",
    "turngym.trainers.metric_log": "turngym.trainers.records.metric_log",
    "turngym.trainers.modifier": "turngym.trainers.algorithms.base.modifier",
    "turngym.trainers.naming": "turngym.trainers.algorithms.base.naming",
    "turngym.trainers.needs": "turngym.trainers.loop.needs",
    "turngym.trainers.past_selves": "turngym.trainers.loop.opponent_pool",
    "turngym.trainers.plugins": "turngym.trainers.integrations",
    "turngym.trainers.policy_statistics": "turngym.trainers.engine.policy_statistics",
    "turngym.trainers.prepared": "turngym.trainers.engine.prepared",
    "turngym.trainers.presets": "turngym.trainers.settings.presets",
    "turngym.trainers.report_page": "turngym.trainers.report.page",
    "turngym.trainers.report_samples": "turngym.trainers.report.samples",
    "turngym.trainers.reward_kl": "turngym.trainers.algorithms.base.reward_kl",
    "turngym.trainers.reward_models.base.task": "turngym.trainers.loop.rewarded_task",
    "turngym.trainers.rewarding": "turngym.trainers.reward_models.base",
    "turngym.trainers.rollout_metrics": "turngym.trainers.records.rollout_metrics",
    "turngym.trainers.rows": "turngym.trainers.core.rows",
    "turngym.trainers.run_folder": "turngym.trainers.records.run_folder",
    "turngym.trainers.samples": "turngym.trainers.records.samples",
    "turngym.trainers.scoring": "turngym.trainers.engine.scoring",
    "turngym.trainers.setup": "turngym.trainers.loop.setup",
    "turngym.trainers.sft": "turngym.trainers.loop.sft",
    "turngym.trainers.sharing": "turngym.trainers.engine.sharing",
    "turngym.trainers.signals": "turngym.trainers.core.signals",
    "turngym.trainers.stored_config": "turngym.trainers.settings.stored_config",
    "turngym.trainers.supervised_config": "turngym.trainers.settings.supervised",
    "turngym.trainers.task": "turngym.trainers.loop.task",
    "turngym.trainers.time_left": "turngym.trainers.loop.time_left",
    "turngym.trainers.trainer": "turngym.trainers.loop.trainer",
    "turngym.trainers.trajectory_json": "turngym.trainers.core.trajectory_json",
    "turngym.trainers.turn_table": "turngym.trainers.core.turn_table",
    "turngym.trainers.twin_critic": "turngym.trainers.engine.twin_critic",
    "turngym.trainers.update_config": "turngym.trainers.core.update_config",
    "turngym.trainers.vllm_rollouts": "turngym.trainers.loop.vllm_rollouts",
    "turngym.trainers.wording": "turngym.trainers.core.wording",
    "turngym.wrappers.action_format": "turngym.wrappers.actions.action_format",
    "turngym.wrappers.anchor": "turngym.wrappers.observations.anchor",
    "turngym.wrappers.choices": "turngym.wrappers.actions.choices",
    "turngym.wrappers.curriculum": "turngym.wrappers.sampling.curriculum",
    "turngym.wrappers.episode_log": "turngym.wrappers.recording.episode_log",
    "turngym.wrappers.format_reward": "turngym.wrappers.rewards.format_reward",
    "turngym.wrappers.history": "turngym.wrappers.observations.history",
    "turngym.wrappers.invalid_action": "turngym.wrappers.actions.invalid_action",
    "turngym.wrappers.mcp_tools": "turngym.wrappers.tool_use.mcp_tools",
    "turngym.wrappers.normalize_reward": "turngym.wrappers.rewards.normalize_reward",
    "turngym.wrappers.parse_action": "turngym.wrappers.actions.parse_action",
    "turngym.wrappers.progress_reward": "turngym.wrappers.rewards.progress_reward",
    "turngym.wrappers.recipe_progress": "turngym.wrappers.rewards.recipe_progress",
    "turngym.wrappers.recipes": "turngym.wrappers.rewards.recipes",
    "turngym.wrappers.record": "turngym.wrappers.recording.record",
    "turngym.wrappers.replay": "turngym.wrappers.recording.replay",
    "turngym.wrappers.success_filter": "turngym.wrappers.sampling.success_filter",
    "turngym.wrappers.task_sampler": "turngym.wrappers.sampling.task_sampler",
    "turngym.wrappers.token_limit": "turngym.wrappers.limits.token_limit",
    "turngym.wrappers.tool_schema": "turngym.wrappers.tool_use.tool_schema",
    "turngym.wrappers.tools": "turngym.wrappers.tool_use.tools",
    "turngym.wrappers.turn_limit": "turngym.wrappers.limits.turn_limit",
}
"""Old dotted path -> new dotted path, of modules and packages."""


def current(path: str) -> str:
    """Return where a module, or something in it, is now; a path that has not moved is returned as it is.

    Args:
        path: A dotted path, with or without ``:name`` behind it.

    >>> current("turngym.envs.core:TextEnv")
    'turngym.envs.core:TextEnv'
    """
    module, colon, name = path.partition(":")
    head = module
    while head:
        if head in MOVED:
            return MOVED[head] + module[len(head) :] + colon + name
        head = head.rpartition(".")[0]
    return path


class _MovedLoader:
    """Hands out the module under its new path, so that a class exists once under both."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._path)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has set that of the old path


class _MovedFinder:
    """Finds moved modules. It comes first: below a moved package, others would load a second copy of a module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("turngym."):
            return None
        found = current(fullname)
        if found == fullname:
            return None
        warnings.warn(
            f"{fullname} has moved to {found}; the old path goes with the next version.",
            DeprecationWarning,
            stacklevel=_level(),
        )
        return ModuleSpec(fullname, cast("Loader", _MovedLoader(found)))


def _level() -> int:
    """Return the stack level of the user's line; the import system's own frames are not counted."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return 3 if frame.f_globals.get("__name__") == "importlib" else 2


def install() -> None:
    """Let old paths be imported."""
    if not any(isinstance(each, _MovedFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())
