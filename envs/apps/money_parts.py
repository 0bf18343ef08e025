"""Parts about payments: invoices, requests, shares of a bill, sums over a month."""

from __future__ import annotations

from turngym.envs.apps.fiction import Draft, Fiction
from turngym.envs.apps.part import PAGES, Part, look_up, step

_MONTHS = ("January", "February", "March", "April", "May")


def pay_invoice(fiction: Fiction) -> Part:
    """Pay the sum that a mail of somebody names."""
    dice, (person, twin, who) = fiction.dice, fiction.person()
    (box, its_box), (wallet, its_wallet) = fiction.account("mail"), fiction.account("pay")
    numbers = [dice.whole(1000 * first, 1000 * first + 999) for first in fiction.shuffled(range(1, 10))[:4]]

    def invoice(account: Draft, sender: Draft, number: int, folder: str = "inbox") -> tuple[Draft, int]:
        cents = fiction.cents()
        text = f"Invoice {number}: {cents // 100}.{cents % 100:02} in all. Thank you."
        return fiction.mail(account, sender, f"Invoice {number}", text, folder), cents

    mail, cents = invoice(box, person, numbers[0])
    invoice(box, twin, numbers[1])
    invoice(box, person, numbers[2], "paid")
    for other in fiction.others(box):
        invoice(other, person, numbers[3])
    text = (
        f"Pay the invoice from {who} in the inbox of {its_box} out of {its_wallet}, with the number of the invoice "
        "alone as the note."
    )
    reads = [*look_up(person), step("mail_search", box, query=person["email"], page=PAGES)]
    reads.append(step("mail_show", box, mail=mail))
    return Part(text, reads, [step("pay_send", wallet, handle=person["handle"], cents=cents, note=str(numbers[0]))])


def answer_requests(fiction: Fiction) -> Part:
    """Accept one request of somebody and decline the other open ones."""
    dice, (person, twin, who) = fiction.dice, fiction.person()
    wallet, its_wallet = fiction.account("pay")
    thing = fiction.topic()
    accepted = fiction.request(wallet, person, thing)
    declined = [fiction.request(wallet, person, fiction.topic()) for _ in range(dice.whole(1, 2))]
    fiction.request(wallet, person, fiction.topic(), "paid")
    fiction.request(wallet, twin, thing)
    for other in fiction.others(wallet):
        fiction.request(other, person, thing)
    text = (
        f"In {its_wallet}, accept the request of {who} for the {thing}, and decline all other open requests of this "
        "person there."
    )
    reads = [*look_up(person), step("pay_list_requests", wallet, page=PAGES)]
    writes = [step("pay_accept", wallet, request=accepted)]
    return Part(text, reads, writes + [step("pay_decline", wallet, request=each) for each in declined])


def split_bill(fiction: Fiction) -> Part:
    """Request equal shares of a bill from the guests of an event."""
    dice, title = fiction.dice, fiction.topic()
    (calendar, its_calendar), (wallet, its_wallet) = fiction.account("calendar"), fiction.account("pay")
    guests = [fiction.contact() for _ in range(dice.whole(2, 3))]
    event = fiction.event(calendar, title, guests)
    for other in fiction.others(calendar):
        fiction.event(other, title, [guests[0], fiction.contact()])
    share = dice.whole(300, 9_000)
    fiction.payment(wallet, f"@venue{dice.whole(10, 99)}", share * (len(guests) + 1), title)
    for other in fiction.others(wallet):
        fiction.payment(other, f"@venue{dice.whole(10, 99)}", dice.whole(300, 9_000) * (len(guests) + 1), title)
    text = (
        f"You paid for the {title} from {its_wallet}. Request from each guest of this event in {its_calendar} an "
        f"equal share with that account: the sum is divided by the guests and yourself. The note is {title}."
    )
    reads = [step("calendar_search", calendar, query=title, page=PAGES)]
    reads += [step("calendar_list_guests", calendar, event=event, page=PAGES)]
    reads += [step("pay_search", wallet, query=title, page=PAGES)]
    reads += [each for guest in guests for each in look_up(guest, is_named=False)]
    writes = [step("pay_request", wallet, handle=each["handle"], cents=share, note=title) for each in guests]
    return Part(text, reads, writes)


def sum_of_month(fiction: Fiction) -> Part:
    """Write down what was paid to somebody in a month."""
    dice, (person, twin, who) = fiction.dice, fiction.person()
    (wallet, its_wallet), (notes, its_notes) = fiction.account("pay"), fiction.account("notes")
    month = dice.whole(1, 5)
    sums = [fiction.cents() for _ in range(dice.whole(2, 5))]
    for cents in sums:
        fiction.payment(
            wallet, person["handle"], cents, fiction.dice.one(("lesson", "repair", "lunch")), fiction.day(month)
        )
    fiction.payment(wallet, person["handle"], fiction.cents(), "refund", fiction.day(month), "in")
    fiction.payment(wallet, person["handle"], fiction.cents(), "repair", fiction.day(month % 5 + 1))
    fiction.payment(wallet, twin["handle"], fiction.cents(), "repair", fiction.day(month))
    for other in fiction.others(wallet):
        fiction.payment(other, person["handle"], fiction.cents(), "repair", fiction.day(month))
    title = fiction.topic()
    text = (
        f"Add a note titled {title} in {its_notes} whose text is the sum in cents, digits alone, of what you paid "
        f"to {who} from {its_wallet} in {_MONTHS[month - 1]} 2031; what came back does not count."
    )
    reads = [*look_up(person), step("pay_search", wallet, query=person["handle"], page=PAGES)]
    return Part(text, reads, [step("notes_create", notes, title=title, text=str(sum(sums)))])


MONEY = (pay_invoice, answer_requests, split_bill, sum_of_month)
