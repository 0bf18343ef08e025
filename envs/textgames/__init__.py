"""Native text games."""

from turngym.envs.registration import Spec

SPECS = {
    "turngym/BernoulliBandit-v0": Spec(
        "turngym.envs.textgames.bandit:BernoulliBandit", {}, "Find the one of five buttons that pays most often."
    ),
    "turngym/BernoulliBanditHard-v0": Spec(
        "turngym.envs.textgames.bandit:BernoulliBandit",
        {"gap": 0.2, "horizon": 200},
        "Find the button that pays a little more often than the four others.",
    ),
    "turngym/Blackjack-v0": Spec(
        "turngym.envs.textgames.blackjack:Blackjack", {}, "Hit or stand against the dealer, in games that can be won."
    ),
    "turngym/ContextualBandit-v0": Spec(
        "turngym.envs.textgames.bandit.contextual:ContextualBandit",
        {},
        "Recommend books to readers, and learn from their ratings.",
    ),
    "turngym/EZPoints-v0": Spec(
        "turngym.envs.textgames.ez_points:EZPoints", {}, "Make 12 of two cards, one token at a time."
    ),
    "turngym/FrozenLake-v0": Spec(
        "turngym.envs.textgames.frozen_lake:FrozenLake", {}, "Cross a frozen lake without falling into a hole."
    ),
    "turngym/FrozenLakeSlippery-v0": Spec(
        "turngym.envs.textgames.frozen_lake:FrozenLake",
        {"slippery": True, "max_turns": 60},
        "Cross a frozen lake whose ice makes you slip.",
    ),
    "turngym/GaussianBandit-v0": Spec(
        "turngym.envs.textgames.bandit:GaussianBandit", {}, "Find the button with the highest mean reward."
    ),
    "turngym/GaussianBanditHard-v0": Spec(
        "turngym.envs.textgames.bandit:GaussianBandit",
        {"arms": 20, "spread": 3.0, "horizon": 100},
        "Find the button with the highest mean reward among twenty.",
    ),
    "turngym/GuessTheNumber-v0": Spec(
        "turngym.envs.textgames.guess_the_number:GuessTheNumber",
        {},
        "Find a hidden number from higher and lower.",
    ),
    "turngym/NumberLine-v0": Spec(
        "turngym.envs.textgames.number_line:NumberLine", {}, "Walk along the numbers from 0 to 5 to a target."
    ),
    "turngym/NumberLineHard-v0": Spec(
        "turngym.envs.textgames.number_line:NumberLine",
        {"highest": 50, "max_turns": 100},
        "Walk along the numbers from 0 to 50 to a target.",
    ),
    "turngym/Points24-v0": Spec(
        "turngym.envs.textgames.ez_points:EZPoints",
        {"cards": 4, "target": 24, "operators": "+-*/"},
        "Make 24 of four cards, one token at a time.",
    ),
    "turngym/Sokoban-v0": Spec(
        "turngym.envs.textgames.sokoban:Sokoban", {}, "Push a box onto its goal in a small room."
    ),
    "turngym/SokobanHard-v0": Spec(
        "turngym.envs.textgames.sokoban:Sokoban",
        {"size": 8, "boxes": 2, "max_turns": 60},
        "Push two boxes onto their goals in a larger room.",
    ),
    "turngym/TowerOfHanoi-v0": Spec(
        "turngym.envs.textgames.tower_of_hanoi:TowerOfHanoi", {}, "Move a tower of discs to another peg."
    ),
    "turngym/HangmanEasy-v0": Spec(
        "turngym.envs.textgames.hangman:Hangman",
        {"shortest": 8, "longest": 10, "lives": 10, "max_turns": 26},
        "Find a long word letter by letter.",
    ),
    "turngym/Hangman-v0": Spec("turngym.envs.textgames.hangman:Hangman", {}, "Find a word letter by letter."),
    "turngym/HangmanHard-v0": Spec(
        "turngym.envs.textgames.hangman:Hangman",
        {"shortest": 4, "longest": 6, "lives": 6},
        "Find a short word letter by letter with few lives.",
    ),
    "turngym/MastermindEasy-v0": Spec(
        "turngym.envs.textgames.mastermind:Mastermind",
        {"length": 3, "colours": 4, "max_turns": 8},
        "Find a hidden code of three digits from pegs.",
    ),
    "turngym/Mastermind-v0": Spec(
        "turngym.envs.textgames.mastermind:Mastermind", {}, "Find a hidden code of four digits from pegs."
    ),
    "turngym/MastermindHard-v0": Spec(
        "turngym.envs.textgames.mastermind:Mastermind",
        {"length": 5, "colours": 8, "max_turns": 12},
        "Find a hidden code of five digits from pegs.",
    ),
    "turngym/SudokuEasy-v0": Spec(
        "turngym.envs.textgames.sudoku:Sudoku", {"size": 4}, "Fill a grid of four by four cells."
    ),
    "turngym/Sudoku-v0": Spec("turngym.envs.textgames.sudoku:Sudoku", {}, "Fill a grid of nine by nine cells."),
    "turngym/SudokuHard-v0": Spec(
        "turngym.envs.textgames.sudoku:Sudoku", {"clues": 32}, "Fill a grid of nine by nine cells from few clues."
    ),
    "turngym/Wordle-v0": Spec("turngym.envs.textgames.wordle:Wordle", {}, "Find a hidden word from marked guesses."),
    "turngym/WordleHard-v0": Spec(
        "turngym.envs.textgames.wordle:Wordle",
        {"strict": True},
        "Find a hidden word; every guess must fit all marks so far.",
    ),
    "turngym/FifteenPuzzle-v0": Spec(
        "turngym.envs.textgames.fifteen_puzzle:FifteenPuzzle", {}, "Slide fifteen tiles that were moved a little back."
    ),
    "turngym/FifteenPuzzleEasy-v0": Spec(
        "turngym.envs.textgames.fifteen_puzzle:FifteenPuzzle",
        {"size": 3, "scramble": None, "max_turns": 50},
        "Slide the eight tiles of a small board into order.",
    ),
    "turngym/FifteenPuzzleHard-v0": Spec(
        "turngym.envs.textgames.fifteen_puzzle:FifteenPuzzle",
        {"scramble": None, "max_turns": 200},
        "Slide fifteen tiles into order from anywhere.",
    ),
    "turngym/Game2048-v0": Spec("turngym.envs.textgames.game_2048:Game2048", {}, "Merge tiles until one shows 256."),
    "turngym/Game2048Easy-v0": Spec(
        "turngym.envs.textgames.game_2048:Game2048",
        {"target": 128, "max_turns": 120},
        "Merge tiles until one shows 128.",
    ),
    "turngym/Game2048Hard-v0": Spec(
        "turngym.envs.textgames.game_2048:Game2048",
        {"target": 512, "max_turns": 400},
        "Merge tiles until one shows 512.",
    ),
    "turngym/Maze-v0": Spec("turngym.envs.textgames.maze:Maze", {}, "Walk through a maze with a map of it."),
    "turngym/MazeEasy-v0": Spec(
        "turngym.envs.textgames.maze:Maze", {"size": 7, "max_turns": 30}, "Walk through a small maze with a map of it."
    ),
    "turngym/MazeHard-v0": Spec(
        "turngym.envs.textgames.maze:Maze",
        {"size": 13, "loops": 0.1, "view": "near", "radius": 2, "max_turns": 200},
        "Find the way through a maze of which only what is near is seen.",
    ),
    "turngym/Minesweeper-v0": Spec(
        "turngym.envs.textgames.minesweeper:Minesweeper", {}, "Open every cell without a mine, by deduction."
    ),
    "turngym/MinesweeperEasy-v0": Spec(
        "turngym.envs.textgames.minesweeper:Minesweeper",
        {"rows": 6, "columns": 6, "mines": 5, "max_turns": 40},
        "Open every cell without a mine on a small board.",
    ),
    "turngym/MinesweeperHard-v0": Spec(
        "turngym.envs.textgames.minesweeper:Minesweeper",
        {"rows": 12, "columns": 12, "mines": 24, "max_turns": 120},
        "Open every cell without a mine on a large board.",
    ),
}
