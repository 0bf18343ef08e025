"""Parts about files and music: sharing, sorting, playlists."""

from __future__ import annotations

from turngym.envs.apps.fiction import OF_SONG, SONG, Fiction
from turngym.envs.apps.part import PAGES, Made, Part, look_up, step

ENDS = ("pdf", "csv", "txt", "odt")


def share_file(fiction: Fiction) -> Part:
    """Share the file that a note names."""
    person, _, who = fiction.person()
    (notes, its_notes), (files, its_files) = fiction.account("notes"), fiction.account("files")
    title, folder = fiction.topic(), fiction.folder()
    name = f"{title.replace(' ', '-')}.{fiction.dice.one(ENDS)}"
    note = fiction.note(notes, title, f"The right version is {folder}/{name}.")
    file = fiction.file(files, folder, name)
    for place in ("desk", "misc"):
        fiction.file(files, place, name)
    for account in fiction.others(files):
        fiction.file(account, folder, name)
    text = f"The note {title} in {its_notes} says which file is the right one. Share it from {its_files} with {who}."
    reads = [step("notes_search", notes, query=title, page=PAGES), step("notes_show", notes, note_id=note)]
    reads += [step("files_search", files, query=name, page=PAGES), *look_up(person)]
    return Part(text, reads, [step("files_share", files, file=file, email=person["email"])])


def sort_files(fiction: Fiction) -> Part:
    """Move files of one year and kind to another folder."""
    dice = fiction.dice
    files, its_files = fiction.account("files")
    source, target = fiction.folder(), fiction.folder()
    end, other_end = dice.some(ENDS, 2, 2)
    year = dice.whole(2024, 2029)

    def made(year: int, end: str, folder: str = source) -> object:
        name = f"{fiction.dice.one(('scan', 'letter', 'page', 'copy'))}-{dice.whole(100, 999)}.{end}"
        return fiction.file(files, folder, name, day=f"{year}{fiction.day()[4:]}")

    moved = [made(year, end) for _ in range(dice.whole(2, 4))]
    for each in range(dice.whole(2, 4)):
        made(year + 1 - 2 * (each % 2), end)
        made(year, other_end)
    made(year, end, "misc")
    text = (
        f"In {its_files}, move the files of the folder {source} that are from {year} and whose names end in .{end} to "
        f"the folder {target}."
    )
    reads = [step("files_list", files, folder=source, page=PAGES)]
    return Part(text, reads, [step("files_move", files, file=each, folder=target) for each in moved])


def make_playlist(fiction: Fiction) -> Part:
    """Make a playlist of the songs that a note names."""
    dice, artists = fiction.dice, [fiction.artist() for _ in range(3)]
    (notes, its_notes), (music, its_music) = fiction.account("notes"), fiction.account("music")
    title, name = fiction.topic(), f"{fiction.topic()} songs"
    titles = [f"{word} {dice.one(OF_SONG)}" for word in dice.some(SONG, 2, 3)]
    songs = [fiction.song(artists[place % 2], each) for place, each in enumerate(titles)]
    for each in titles:
        fiction.song(artists[2], each)
    lines = [f"{each['title']} by {each['artist']}" for each in songs]
    note = fiction.note(notes, title, "\n".join(lines))
    text = f"Make a playlist {name} in {its_music} with the songs that the note {title} in {its_notes} names."
    reads = [step("notes_search", notes, query=title, page=PAGES), step("notes_show", notes, note_id=note)]
    reads += [step("music_search", music, query=each["title"], page=PAGES) for each in songs]
    playlist = Made("music_create_playlist")
    writes = [step("music_create_playlist", music, name=name)]
    return Part(text, reads, writes + [step("music_add_song", music, playlist=playlist, song=each) for each in songs])


def trim_playlist(fiction: Fiction) -> Part:
    """Take the songs of one artist off a playlist."""
    dice, name = fiction.dice, f"{fiction.topic()} songs"
    music, its_music = fiction.account("music")
    artist, other = fiction.artist(), fiction.artist()
    gone = [fiction.song(artist) for _ in range(dice.whole(2, 3))]
    kept = [fiction.song(other) for _ in range(dice.whole(3, 5))]
    playlist = fiction.playlist(music, name, fiction.shuffled([*gone, *kept]))
    for account in fiction.others(music):
        fiction.playlist(account, name, gone)
    text = f"In {its_music}, take all songs of {artist} off the playlist {name}."
    reads = [
        step("music_list_playlists", music, page=PAGES),
        step("music_list_songs", music, playlist=playlist, page=PAGES),
    ]
    return Part(text, reads, [step("music_remove_song", music, playlist=playlist, song=each) for each in gone])


FILES = (share_file, sort_files, make_playlist, trim_playlist)
