"""Short reviews in twenty languages and fifteen scripts, half of them good."""

from __future__ import annotations

from typing import Any

import numpy as np

# For each language: neutral words, words of good reviews, and words of bad reviews.
_WORDS = {
    "ar": ("كان الفيلم الطعام هنا اليوم", "رائع ممتاز جميل", "سيئ ممل رهيب"),
    "bn": ("সিনেমা খাবার এখানে আজ ছিল", "চমৎকার সুন্দর ভালো", "খারাপ ভয়ানক বিরক্তিকর"),
    "cs": ("film jídlo zde dnes bylo", "skvělé výborné krásné", "hrozné špatné nudné"),
    "de": ("der Film das Essen hier heute war", "großartig schön köstlich", "schlecht öde scheußlich"),
    "el": ("η ταινία το φαγητό εδώ σήμερα ήταν", "υπέροχη ωραία εξαιρετική", "κακή βαρετή φρικτή"),
    "en": ("the film the food here today was", "great lovely delicious", "bad boring awful"),
    "fr": ("le film le repas ici aujourd'hui était", "très bon délicieux génial", "mauvais ennuyeux raté"),
    "gu": ("ફિલ્મ ખોરાક અહીં આજે હતી", "સરસ સુંદર ઉત્તમ", "ખરાબ ભયંકર કંટાળાજનક"),
    "he": ("הסרט האוכל כאן היום היה", "נהדר מצוין טעים", "רע משעמם נורא"),
    "hi": ("फ़िल्म खाना यहाँ आज था", "बढ़िया सुंदर शानदार", "बुरा उबाऊ भयानक"),
    "hy": ("ֆիլմը ուտելիքը այստեղ այսօր էր", "հիանալի գեղեցիկ համեղ", "վատ ձանձրալի սարսափելի"),
    "ja": ("映画 は 食事 は ここ 今日", "素晴らしい 美味しい 最高", "ひどい 退屈 最悪"),
    "ka": ("ფილმი საჭმელი აქ დღეს იყო", "შესანიშნავი კარგი გემრიელი", "ცუდი მოსაწყენი საშინელი"),
    "ko": ("영화 는 음식 은 여기 오늘", "훌륭했다 맛있었다 최고였다", "나빴다 지루했다 끔찍했다"),
    "pl": ("film jedzenie tutaj dzisiaj było", "świetne piękne pyszne", "złe nudne okropne"),
    "ru": ("фильм еда здесь сегодня была", "отличная прекрасная вкусная", "плохая скучная ужасная"),
    "ta": ("படம் உணவு இங்கே இன்று இருந்தது", "அருமை அழகு சுவை", "மோசம் சலிப்பு பயங்கரம்"),
    "th": ("หนัง อาหาร ที่นี่ วันนี้ คือ", "ดีมาก อร่อย สวยงาม", "แย่ น่าเบื่อ เลวร้าย"),
    "tr": ("film yemek burada bugün İstanbul'da", "harika güzel çok iyi", "kötü sıkıcı berbat"),
    "vi": ("bộ phim món ăn ở đây hôm nay", "tuyệt vời rất ngon đẹp", "tệ chán kinh khủng"),
    "zh": ("电影 食物 这里 今天 是", "很 好 精彩 美味", "糟糕 无聊 可怕"),
}
_MARKS = ["", "!", "…", " 😀", " 👎🏽", "。", " ¿?", "\u0301"]
REVIEWS = 400


def reviews(seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Return records with a text and its language, and their labels."""
    rng = np.random.default_rng(seed)
    languages = list(_WORDS)
    records, labels = [], []
    for number in range(REVIEWS):
        language = languages[number % len(languages)]
        any_words, positive_words, negative_words = (words.split() for words in _WORDS[language])
        is_good = bool(rng.random() < 0.5)
        words = [
            *rng.choice(any_words, 4).tolist(),
            *rng.choice(positive_words if is_good else negative_words, 2).tolist(),
        ]
        text = " ".join(words) + _MARKS[int(rng.integers(len(_MARKS)))]
        records.append({"text": text, "language": language})
        labels.append("pos" if is_good else "neg")
    return records, labels
