"""Two-player games: id -> entry point, options, summary."""

from turngym.envs.registration import Spec

SPECS = {
    "turngym/KuhnPoker-v0": Spec("turngym.envs.tablegames.kuhn_poker:KuhnPoker", {}, "One hand of three-card poker."),
    "turngym/KuhnPokerMatch-v0": Spec(
        "turngym.envs.tablegames.kuhn_poker:KuhnPoker",
        {"hands": 10},
        "Ten hands of three-card poker, taking turns to act first.",
    ),
    "turngym/LeducPoker-v0": Spec(
        "turngym.envs.tablegames.leduc_poker:LeducPoker", {}, "One hand of poker with six cards and two rounds of bets."
    ),
    "turngym/LiarsDice-v0": Spec(
        "turngym.envs.tablegames.liars_dice:LiarsDice", {}, "One hidden die each, and bids that may be lies."
    ),
    "turngym/LiarsDiceFive-v0": Spec(
        "turngym.envs.tablegames.liars_dice:LiarsDice",
        {"dice": 5, "wild": False},
        "Five hidden dice each, and bids that may be lies.",
    ),
    "turngym/TicTacToe-v0": Spec("turngym.envs.tablegames.tic_tac_toe:TicTacToe", {}, "Three in a row on nine cells."),
    "turngym/ConnectFour-v0": Spec(
        "turngym.envs.tablegames.connect_four:ConnectFour", {}, "Four in a row on seven columns and six rows."
    ),
    "turngym/ConnectFourSmall-v0": Spec(
        "turngym.envs.tablegames.connect_four:SmallConnectFour",
        {},
        "Four in a row on a board small enough for a perfect player.",
    ),
    "turngym/SimpleNegotiation-v0": Spec(
        "turngym.envs.tablegames.simple_negotiation:SimpleNegotiation", {}, "Trade wood and gold, and gain more."
    ),
    "turngym/SimpleNegotiationFive-v0": Spec(
        "turngym.envs.tablegames.simple_negotiation:SimpleNegotiation",
        {"goods": "five"},
        "Trade five goods whose worth only you know, and gain more.",
    ),
    "turngym/Bargaining-v0": Spec(
        "turngym.envs.tablegames.bargaining:Bargaining", {}, "Divide a pie that shrinks while you bargain."
    ),
    "turngym/BargainingHidden-v0": Spec(
        "turngym.envs.tablegames.bargaining:Bargaining",
        {"complete_information": False, "messages_allowed": True, "max_rounds": 99},
        "Divide a pie with messages, without knowing the other's patience or the last round.",
    ),
    "turngym/PriceNegotiation-v0": Spec(
        "turngym.envs.tablegames.price_negotiation:PriceNegotiation", {}, "Agree on the price of a product, or leave."
    ),
    "turngym/PriceNegotiationHidden-v0": Spec(
        "turngym.envs.tablegames.price_negotiation:PriceNegotiation",
        {"complete_information": False, "messages_allowed": True, "max_rounds": 30},
        "Agree on a price with messages, without knowing what the product is worth to the other.",
    ),
    "turngym/Persuasion-v0": Spec(
        "turngym.envs.tablegames.persuasion:Persuasion",
        {},
        "Twenty products whose quality the seller sees: recommend, and buy or not.",
        partner="commitment",
    ),
    "turngym/PersuasionTalk-v0": Spec(
        "turngym.envs.tablegames.persuasion:Persuasion",
        {"seller_message": "text", "buyer_messages_allowed": True},
        "Twenty products whose quality the seller sees and describes; buy or not.",
        partner="commitment",
    ),
    "turngym/Ultimatum-v0": Spec(
        "turngym.envs.tablegames.shares:Ultimatum", {}, "Ten rounds of offers to divide ten points, or none."
    ),
    "turngym/UltimatumOnce-v0": Spec(
        "turngym.envs.tablegames.shares:Ultimatum", {"rounds": 1}, "One offer to divide ten points, or none."
    ),
    "turngym/Trust-v0": Spec(
        "turngym.envs.tablegames.shares:Trust", {}, "Ten rounds of sending points that are tripled, and returning some."
    ),
    "turngym/PrisonersDilemma-v0": Spec(
        "turngym.envs.tablegames.matrix_games:PrisonersDilemma", {}, "Ten rounds of cooperating or defecting."
    ),
    "turngym/PrisonersDilemmaTalk-v0": Spec(
        "turngym.envs.tablegames.matrix_games:PrisonersDilemma",
        {"talk": 1},
        "Ten rounds of cooperating or defecting, with talk before each.",
    ),
    "turngym/StagHunt-v0": Spec("turngym.envs.tablegames.matrix_games:StagHunt", {}, "Ten rounds of stag or hare."),
    "turngym/StagHuntTalk-v0": Spec(
        "turngym.envs.tablegames.matrix_games:StagHunt",
        {"talk": 1},
        "Ten rounds of stag or hare, with talk before each.",
    ),
    "turngym/Chicken-v0": Spec("turngym.envs.tablegames.matrix_games:Chicken", {}, "Ten rounds of swerving or not."),
    "turngym/BattleOfTheSexes-v0": Spec(
        "turngym.envs.tablegames.matrix_games:BattleOfTheSexes",
        {"talk": 1},
        "Ten rounds of finding each other at one of two places, with talk before each.",
    ),
    "turngym/MatchingPennies-v0": Spec(
        "turngym.envs.tablegames.matrix_games:MatchingPennies", {}, "Ten rounds of equal or different sides."
    ),
    "turngym/RockPaperScissors-v0": Spec(
        "turngym.envs.tablegames.matrix_games:RockPaperScissors", {}, "Ten rounds of rock, paper, scissors."
    ),
}
