-- The rows of the sample, made of their numbers alone: the same in SQLite and PostgreSQL.
-- `n * large odd number % 2^32 / 2^16` scatters numbers over 0 to 65535. Prices are multiples of
-- 0.50, so that sums are exact in binary floats too.

INSERT INTO customers
WITH RECURSIVE
    numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 400),
    places (k, city, province) AS (VALUES
        (0, '北京', '北京'), (1, '上海', '上海'), (2, '广州', '广东'), (3, '深圳', '广东'),
        (4, '杭州', '浙江'), (5, '成都', '四川'), (6, '武汉', '湖北'), (7, '西安', '陕西'),
        (8, '南京', '江苏'), (9, '重庆', '重庆'), (10, '苏州', '江苏'), (11, '天津', '天津')),
    families (k, family) AS (VALUES
        (0, '王'), (1, '李'), (2, '张'), (3, '刘'), (4, '陈'), (5, '杨'), (6, '赵'), (7, '黄'),
        (8, '周'), (9, '吴'), (10, '徐'), (11, '孙'), (12, '林'), (13, '何'), (14, '郭'), (15, '欧阳')),
    given (k, given_name) AS (VALUES
        (0, '伟'), (1, '芳'), (2, '娜'), (3, '敏'), (4, '静'), (5, '丽华'), (6, '强'), (7, '磊'),
        (8, '洋'), (9, '思远'), (10, '雨桐'), (11, '子涵'), (12, '浩然'), (13, '佳怡'), (14, '建国')),
    words (k, word) AS (VALUES
        (0, '华创'), (1, '远景'), (2, '金桥'), (3, '汇通'), (4, '瑞丰'), (5, '天合'), (6, '新海'),
        (7, '鼎盛'), (8, '联众'), (9, '百川'), (10, '中岳'), (11, '明德'), (12, '海纳')),
    foreign_names (k, foreign_name) AS (VALUES
        (0, 'Harbor Foods'), (1, 'Blue Ridge Supply'), (2, 'Maple Retail'), (3, 'Orion Systems'),
        (4, 'Cedar & Sons'), (5, 'Lakeside Stores'), (6, 'Pioneer Tools')),
    scattered (i, a, b, c) AS (
        SELECT i, ((i * 2654435761) % 4294967296) / 65536, ((i * 2246822519) % 4294967296) / 65536, ((i * 3266489917) % 4294967296) / 65536 FROM numbers),
    chosen (i, a, b, c, segment) AS (
        SELECT i, a, b, c,
            CASE
                WHEN i = 1 THEN '企业客户' WHEN i = 2 THEN '经销商' WHEN i = 3 THEN '个人客户'
                WHEN a % 10 < 4 THEN '企业客户' WHEN a % 10 < 8 THEN '个人客户' ELSE '经销商'
            END
        FROM scattered)
SELECT
    i,
    CASE
        WHEN i = 1 THEN '远航科技有限公司'
        WHEN i = 2 THEN 'Acme Trading Ltd'
        WHEN i = 3 THEN '王小明'
        WHEN segment = '个人客户' THEN family || given_name
        WHEN c % 5 = 0 THEN foreign_name || ' ' || i
        WHEN segment = '企业客户' THEN city || word || '科技有限公司'
        ELSE city || word || '商贸有限公司'
    END,
    city,
    province,
    segment,
    'customer' || i || '@example.com',
    CASE WHEN i % 7 = 0 THEN NULL ELSE '138' || (10000000 + (CAST(i AS BIGINT) * 7654321) % 90000000) END,
    date('2020-01-01', '+' || (b % 1100) || ' days'),
    CASE WHEN i % 50 = 0 THEN 1 ELSE 0 END
-- `CROSS JOIN` keeps SQLite to this order: the other tables are small.
FROM chosen
CROSS JOIN places
CROSS JOIN families
CROSS JOIN given
CROSS JOIN words
CROSS JOIN foreign_names
WHERE places.k = CASE WHEN i <= 3 THEN i - 1 ELSE b % 12 END
    AND families.k = c % 16
    AND given.k = b % 15
    AND words.k = c % 13
    AND foreign_names.k = b % 7
ORDER BY i;

INSERT INTO products (id, name, category, brand, unit_price, stock, is_deleted) VALUES
    (1, '星辰 X1', '手机', '星辰', 3999, 320, 0),
    (2, '星辰 X1 Pro', '手机', '星辰', 5299, 180, 0),
    (3, '星辰 青春版', '手机', '星辰', 1699, 640, 0),
    (4, '云帆 M20', '手机', '云帆', 2499, 410, 0),
    (5, '云帆 M20 Max', '手机', '云帆', 3299, 150, 0),
    (6, '云帆 折叠屏', '手机', '云帆', 8999, 40, 0),
    (7, 'Nova One', '手机', 'Nova', 2999, 275, 0),
    (8, 'Nova One Mini', '手机', 'Nova', 2199, 330, 0),
    (9, 'Nova Rugged', '手机', 'Nova', 1899, 95, 0),
    (10, '北岸 老人机', '手机', '北岸', 399.5, 820, 0),
    (11, '轻羽 13 笔记本', '电脑', '轻羽', 5999, 120, 0),
    (12, '轻羽 15 笔记本', '电脑', '轻羽', 6999, 90, 0),
    (13, '轻羽 工作站', '电脑', '轻羽', 15999, 18, 0),
    (14, 'Nova Book 14', '电脑', 'Nova', 7499, 70, 0),
    (15, 'Nova Book Air', '电脑', 'Nova', 6299, 105, 0),
    (16, '云帆 平板 11', '电脑', '云帆', 2799, 260, 0),
    (17, '云帆 平板 Mini', '电脑', '云帆', 1999, 310, 0),
    (18, '星辰 一体机 24', '电脑', '星辰', 4999, 55, 0),
    (19, '星辰 迷你主机', '电脑', '星辰', 2599, 140, 0),
    (20, '星辰 27 寸显示器', '电脑', '星辰', 1599, 230, 0),
    (21, '清风 空气净化器', '家电', '清风', 1299, 160, 0),
    (22, '清风 电风扇', '家电', '清风', 199.5, 720, 0),
    (23, '清风 加湿器', '家电', '清风', 249, 380, 0),
    (24, '暖屋 电暖器', '家电', '暖屋', 459, 210, 0),
    (25, '暖屋 电热水壶', '家电', '暖屋', 129.5, 900, 0),
    (26, '暖屋 电饭煲', '家电', '暖屋', 399, 350, 0),
    (27, '净源 洗碗机', '家电', '净源', 3699, 45, 0),
    (28, '净源 扫地机器人', '家电', '净源', 2299, 130, 0),
    (29, '净源 吸尘器', '家电', '净源', 1099, 175, 0),
    (30, '净源 净水器', '家电', '净源', 1799, 85, 0),
    (31, 'Nova 无线耳机', '配件', 'Nova', 599, 540, 0),
    (32, 'Nova 充电器 65W', '配件', 'Nova', 149, 1200, 0),
    (33, 'Nova 充电宝', '配件', 'Nova', 199, 860, 0),
    (34, '云帆 手机壳', '配件', '云帆', 49.5, 2400, 0),
    (35, '云帆 数据线', '配件', '云帆', 29.5, 3600, 0),
    (36, '星辰 蓝牙音箱', '配件', '星辰', 329, 290, 0),
    (37, '星辰 机械键盘', '配件', '星辰', 459, 240, 0),
    (38, '星辰 无线鼠标', '配件', '星辰', 139.5, 680, 0),
    (39, '轻羽 电脑包', '配件', '轻羽', 219, 310, 0),
    (40, '轻羽 扩展坞', '配件', '轻羽', 299, 260, 0),
    (41, '木语 书桌', '家居', '木语', 899, 75, 0),
    (42, '木语 书架', '家居', '木语', 599, 110, 0),
    (43, '木语 人体工学椅', '家居', '木语', 1399, 95, 0),
    (44, '木语 床头柜', '家居', '木语', 359, 140, 0),
    (45, '棉田 四件套', '家居', '棉田', 429, 230, 0),
    (46, '棉田 抱枕', '家居', '棉田', 59.5, 760, 0),
    (47, '棉田 毛巾礼盒', '家居', '棉田', 89, 640, 0),
    (48, '灯影 台灯', '家居', '灯影', 169.5, 420, 0),
    (49, '灯影 落地灯', '家居', '灯影', 499, 130, 0),
    (50, '灯影 智能灯泡', '家居', '灯影', 79, 980, 0),
    (51, '数据分析入门', '图书', '知行', 59.5, 1500, 0),
    (52, '图解数据库', '图书', '知行', 79, 1100, 0),
    (53, '城市漫步指南', '图书', '知行', 45, 900, 0),
    (54, '家常菜一百道', '图书', '知行', 39.5, 1300, 0),
    (55, 'Learning SQL by Heart', '图书', 'Maple', 128, 420, 0),
    (56, 'A Short History of Trade', '图书', 'Maple', 98, 380, 0),
    (57, 'The Quiet Machine', '图书', 'Maple', 68, 510, 0),
    (58, '儿童百科', '图书', '青禾', 168, 460, 0),
    (59, '青少年科学实验', '图书', '青禾', 88, 520, 1),
    (60, '绝版诗集', '图书', '青禾', 299, 6, 1);

-- 2,500 orders in the first year, 3,500 in the second.
INSERT INTO orders
WITH RECURSIVE
    numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 6000),
    scattered (i, a, b, c, d) AS (
        SELECT i, ((i * 2654435761) % 4294967296) / 65536, ((i * 2246822519) % 4294967296) / 65536, ((i * 3266489917) % 4294967296) / 65536,
            ((i * 3404213837) % 4294967296) / 65536
        FROM numbers),
    dated (i, a, b, c, d, day) AS (
        SELECT i, a, b, c, d,
            CASE
                WHEN i <= 2500 THEN (i - 1) * 365 / 2500
                ELSE 365 + (i - 2501) * 366 / 3500
            END
        FROM scattered),
    timed (i, a, b, c, day, ordered_at, status) AS (
        SELECT i, a, b, c, day,
            datetime('2023-01-15', '+' || day || ' days', '+' || (28800 + (d * 47) % 50000) || ' seconds'),
            CASE
                WHEN day >= 727 AND c % 3 = 0 THEN 'pending'
                WHEN day >= 727 AND c % 3 = 1 THEN 'paid'
                WHEN day >= 722 AND c % 4 > 0 THEN 'shipped'
                WHEN c % 100 < 84 THEN 'completed'
                WHEN c % 100 < 93 THEN 'cancelled'
                WHEN c % 100 < 97 THEN 'refunded'
                ELSE 'shipped'
            END
        FROM dated)
SELECT
    i,
    'SO' || strftime('%Y%m%d', ordered_at) || substr('000000' || i, -6),
    1 + CASE WHEN a % 400 < b % 400 THEN a % 400 ELSE b % 400 END,
    status,
    CASE WHEN b % 10 < 3 THEN '官网' WHEN b % 10 < 6 THEN '小程序' WHEN b % 10 < 8 THEN '电商平台' ELSE '门店' END,
    0,
    ordered_at,
    CASE WHEN status IN ('shipped', 'completed', 'refunded') THEN datetime(ordered_at, '+' || (1 + c % 3) || ' days') END,
    CASE WHEN i % 100 = 37 THEN 1 ELSE 0 END
FROM timed
ORDER BY i;

-- One to three items each. Nobody ever bought product 60.
INSERT INTO order_items
WITH
    places (k) AS (VALUES (1), (2), (3)),
    scattered (order_id, k, a, b) AS (
        SELECT id, k, (((id * 3 + k) * 2654435761) % 4294967296) / 65536, (((id * 3 + k) * 2246822519) % 4294967296) / 65536
        FROM orders
        CROSS JOIN places
        WHERE k <= 1 + id * 5 % 7 % 3),
    chosen (order_id, k, product_id, quantity) AS (
        SELECT order_id, k, 1 + a % 59, CASE WHEN b % 10 < 6 THEN 1 WHEN b % 10 < 8 THEN 2 ELSE b % 5 + 1 END
        FROM scattered)
SELECT
    row_number() OVER (ORDER BY order_id, k),
    order_id,
    product_id,
    quantity,
    unit_price,
    quantity * unit_price
FROM chosen
CROSS JOIN products
WHERE products.id = product_id
ORDER BY order_id, k;

UPDATE orders
SET total_amount = (SELECT sum(amount) FROM order_items WHERE order_id = orders.id);
