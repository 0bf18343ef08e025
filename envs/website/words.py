"""Words that the content of the sites is made of."""

from __future__ import annotations


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(","))


FIRST_NAMES = _split(
    "Mara, Tom, Ines, Jonas, Petra, Amir, Lena, Oscar, Nadia, Felix, Rosa, Hugo, Priya, Emil, Greta, Samir, Clara, "
    "Anton, Yuki, Bruno, Elif, Viktor, Hanna, Diego"
)
LAST_NAMES = _split(
    "Lind, Okafor, Weber, Santos, Novak, Haddad, Berg, Moreau, Tanaka, Russo, Keller, Popov, Quinn, Silva, Varga, Young"
)
CITIES = _split("Bergen, Graz, Porto, Gent, Lund, Turin, Cork, Brno, Lille, Basel, Vilnius, Malaga")

# Issue tracker.
DEVICES = _split(
    "printer, scanner, laptop, projector, badge reader, mail server, wiki, backup, intranet, phone, monitor, webcam"
)
TROUBLES = _split(
    "freezes after login, loses settings, shows wrong date, is very slow, restarts at night, refuses passwords, "
    "makes a loud noise, needs an update, drops connections, sends double copies, has no signal, stays dark"
)
DETAILS = _split(
    "It began on Monday., Only one room is affected., It happens every morning., Nobody has changed anything., "
    "A restart helps for an hour., The old model is fine., Two people have told us., It can wait until the move."
)
LABELS = _split("bug, wifi, hardware, security, training, urgent fix, question, duplicate, wish, vendor")
MILESTONES = _split("spring cleanup, office move, summer release, audit, winter release, rollout, handover, open day")
TEAMS = ("desk", "network", "apps")
REMARKS = _split(
    "Same here., I will look at it., Which model is it?, The vendor has been told., Fixed it for now., Still happens., "
    "Waiting for a part., Please send a picture."
)
CLOSING_REMARKS = _split(
    "fixed by an update, works again after a restart, replaced the cable, no longer needed, solved by the vendor, "
    "settings restored, cleaned and tested, moved to the new server"
)

# Mail.
FOLDERS = _split("Receipts, Travel, Family, Projects, Club, Archive, School, House")
TOPICS = _split(
    "budget for the fair, keys of the cabin, minutes of the meeting, list of guests, tickets to Gent, choir rehearsal, "
    "plan for the garden, broken heater, photos of the trip, offer for the roof, new parking rules, recipe for the "
    "soup, date of the exam, repair of the bike, lunch on Friday, order of chairs, shift in May, talk at the school, "
    "bill for water, map of the trail, boxes in the cellar, present for Ines, keys for the archive, poster for the hall"
)
MAIL_TEXTS = _split(
    "Could you have a look before Friday?, I have put it on the shared drive., Nothing has changed since last week., "
    "Let me know what you think., It costs a little more than last year., We still need two more people., "
    "The date has moved to the ninth., Please bring it along tomorrow., I forgot to tell you yesterday., "
    "Everything is ready from my side."
)
ANSWERS = _split(
    "I will be there, yes that works for me, please wait until Monday, I have sent it already, no thank you, "
    "let us talk on Friday, all fine from my side, please ask the office, count me in, it is on my desk"
)
STRANGERS = _split(
    "Lucky Lottery, Mega Deals, City Library, Train Service, Garden Shop, Power Company, Parcel Office, Book Club"
)

# Shop.
CATEGORIES = ("garden", "kitchen", "office", "sport")
GOODS = {
    "garden": _split("watering can, rake, seed box, hose, lantern, bird house, plant pot, shears"),
    "kitchen": _split("kettle, bread knife, apron, jam jar, whisk, salad bowl, timer, cutting board"),
    "office": _split("stapler, desk lamp, paper tray, notebook, pencil case, file box, wall clock, whiteboard"),
    "sport": _split("yoga mat, jump rope, water bottle, gym bag, football, head band, tennis racket, bike pump"),
}
MATERIALS = _split("green, steel, small, oak, blue, large, folding, classic, light, red")
ORDER_NOTES = _split(
    "damaged on arrival, customer called twice, leave at the door, wrong colour sent, gift wrap, deliver after noon, "
    "address was checked, paid by invoice"
)
COUPON_WORDS = _split("SPRING, HELLO, THANKS, SUNNY, WINTER, EARLY, BACK, PARTY, LUCKY, FRESH")
